// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/ssa_edges.hpp>

#include <troupe/graph/ssa/storage_accesses.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

namespace troupe::graph {

namespace {

class edge_list {
public:
  explicit edge_list(const ssa_graph& g)
    : graph_(g), feeds_(g.ops.size(), no_handle) {}

  void add_data_edges();
  void add_storage_edges(const storage_accesses& storage);
  void add_collective_order();
  void add_transfers();

  std::vector<edge> take() {
    merge_edges(edges_);
    return std::move(edges_);
  }

private:
  void add(handle_id from, handle_id to, edge_kind kind, std::uint32_t d) {
    edges_.push_back({from, to, kind, d});
  }
  bool feeds_directly(handle_id from, handle_id to);
  void add_write_after_reads(const version_accesses& old, handle_id writer,
                             std::uint32_t distance);
  void add_step_boundary(const storage_accesses& storage);

  const ssa_graph& graph_;
  std::vector<edge> edges_;
  // By op: equals `fed_` if `fed_` reads an output of the op in the same step.
  std::vector<handle_id> feeds_;
  handle_id fed_ = no_handle;
};

void edge_list::add_data_edges() {
  for (auto& op : graph_.ops) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      add(op.inputs[i], op.id, edge_kind::data, graph_.distance_of(op.id, i));
    for (auto output : op.outputs)
      add(op.id, output, edge_kind::data, 0);
  }
}

bool edge_list::feeds_directly(handle_id from, handle_id to) {
  if (std::exchange(fed_, to) != to)
    for (std::size_t i = 0; i < graph_.op(to).inputs.size(); ++i)
      if (auto writer = graph_.var(graph_.op(to).inputs[i]).generator;
          writer != no_handle && graph_.distance_of(to, i) == 0)
        feeds_[writer] = to;
  return feeds_[from] == to;
}

void edge_list::add_write_after_reads(const version_accesses& old,
                                      handle_id writer,
                                      std::uint32_t distance) {
  for (auto reader : old.readers)
    if (reader != writer && !feeds_directly(reader, writer))
      add(reader, writer, edge_kind::write_after_read, distance);
}

// The last version of a step becomes version 0 of the next step. The first
// writer of the next step must come after the readers of that version 0 and
// after the readers of the last version.
void edge_list::add_step_boundary(const storage_accesses& storage) {
  auto* first = storage.first_written();
  if (first == nullptr)
    return;
  auto& last = storage.versions.back();
  auto* initial = storage.initial();
  if (initial != nullptr)
    add(last.var, initial->var, edge_kind::data, 1);
  add_write_after_reads(last, first->writer, 1);
  auto unread =
    last.readers.empty() && (initial == nullptr || initial->readers.empty());
  if (unread && last.writer != first->writer)
    add(last.writer, first->writer, edge_kind::write_after_write, 1);
}

void edge_list::add_storage_edges(const storage_accesses& storage) {
  for (std::size_t i = 1; i < storage.versions.size(); ++i) {
    auto& old = storage.versions[i - 1];
    auto writer = storage.versions[i].writer;
    add_write_after_reads(old, writer, 0);
    if (old.readers.empty() && old.writer != no_handle)
      add(old.writer, writer, edge_kind::write_after_write, 0);
  }
  if (storage.persistable)
    add_step_boundary(storage);
}

// One chain per place, because only transfers lead from place to place. Ranks
// have one chain per device: the ranks of a collective wait for each other
// anyway.
void edge_list::add_collective_order() {
  std::vector<const op_handle*> collectives;
  for (auto& op : graph_.ops)
    if (op.collective_index >= 0)
      collectives.push_back(&op);
  const auto position = [this](const op_handle* o) {
    const auto chain =
      graph_.rank_collectives ? o->device : graph_.place_of(o->device);
    return std::pair{chain, o->collective_index};
  };
  std::ranges::sort(collectives, {}, position);
  for (std::size_t i = 0; i < collectives.size();) {
    const auto first = i;
    for (++i; i < collectives.size()
              && position(collectives[i]).first
                   == position(collectives[first]).first;
         ++i)
      add(collectives[i - 1]->id, collectives[i]->id, edge_kind::order, 0);
    if (i - first > 1)
      add(collectives[i - 1]->id, collectives[first]->id, edge_kind::order, 1);
  }
}

void edge_list::add_transfers() {
  for (auto& t : graph_.transfers)
    add(t.send, t.recv, edge_kind::transfer, 0);
}

// Counting sort by `from`: handles are dense, and each has few edges.
void sort_by_origin(std::vector<edge>& edges) {
  handle_id end = 0;
  for (auto& e : edges)
    end = std::max(end, e.from + 1);
  std::vector<std::uint32_t> next(end + std::size_t{1});
  for (auto& e : edges)
    ++next[e.from + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<edge> sorted(edges.size());
  for (auto& e : edges)
    sorted[next[e.from]++] = e;
  edges = std::move(sorted);
}

bool is_data_of_step(const edge& e) {
  return e.kind == edge_kind::data && e.distance == 0;
}

std::vector<edge> data_edges_of_step(const ssa_graph& g) {
  edge_list edges{g};
  edges.add_data_edges();
  auto all = edges.take();
  std::erase_if(all, std::not_fn(is_data_of_step));
  return all;
}

} // namespace

void drop_data_edges(ssa_graph& g) {
  std::vector<edge> listed;
  std::ranges::copy_if(g.edges, std::back_inserter(listed), is_data_of_step);
  if (listed != data_edges_of_step(g))
    return;
  std::erase_if(g.edges, is_data_of_step);
  g.edges.shrink_to_fit();
  g.lists_data_edges = false;
}

ssa_graph with_data_edges(ssa_graph g) {
  if (std::exchange(g.lists_data_edges, true))
    return g;
  const auto data = data_edges_of_step(g);
  g.edges.insert(g.edges.end(), data.begin(), data.end());
  merge_edges(g.edges);
  return g;
}

std::vector<edge> derive_edges(const ssa_graph& g) {
  edge_list edges{g};
  edges.add_data_edges();
  for (auto& storage : access_list{g})
    edges.add_storage_edges(storage);
  edges.add_collective_order();
  edges.add_transfers();
  return edges.take();
}

void merge_edges(std::vector<edge>& edges) {
  auto key = [](const edge& e) { return std::tuple{e.to, e.distance, e.kind}; };
  sort_by_origin(edges);
  for (auto first = edges.begin(); first != edges.end();) {
    const auto last = std::find_if(
      first, edges.end(), [&](const edge& e) { return e.from != first->from; });
    std::sort(first, last,
              [&](const edge& a, const edge& b) { return key(a) < key(b); });
    first = last;
  }
  auto same_pair = [](const edge& a, const edge& b) {
    return a.from == b.from && a.to == b.to;
  };
  edges.erase(std::unique(edges.begin(), edges.end(), same_pair), edges.end());
}

} // namespace troupe::graph
