// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/storage_accesses.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe::graph {

namespace {

// Turns counts into first positions. The count of item i is at index i + 1.
void sum_up(std::vector<std::size_t>& counts) {
  std::partial_sum(counts.begin(), counts.end(), counts.begin());
}

void sort_by_version(const ssa_graph& g, std::span<version_accesses> versions) {
  auto before = [&g](const version_accesses& a, const version_accesses& b) {
    return g.var(a.var).version < g.var(b.var).version;
  };
  if (!std::ranges::is_sorted(versions, before))
    std::ranges::sort(versions, before);
}

} // namespace

const version_accesses* storage_accesses::first_written() const {
  for (auto& v : versions)
    if (v.writer != no_handle)
      return &v;
  return nullptr;
}

const version_accesses* storage_accesses::initial() const {
  return versions.front().writer == no_handle ? &versions.front() : nullptr;
}

access_list::access_list(const ssa_graph& g) {
  list_readers(g);
  if (!g.delayed_inputs.empty())
    list_delayed_readers(g);
  list_versions(g);
}

// Ops are visited in ascending order, so comparing with the last reader of a
// variable removes duplicates.
void access_list::list_readers(const ssa_graph& g) {
  std::vector<handle_id> last(g.vars.size(), no_handle);
  auto for_each_reader = [&](auto visit) {
    std::ranges::fill(last, no_handle);
    for (auto& op : g.ops)
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const auto var = op.inputs[i] - g.ops.size();
        if (g.distance_of(op.id, i) == 0
            && std::exchange(last[var], op.id) != op.id)
          visit(var, op.id);
      }
  };
  first_reader_.assign(g.vars.size() + 1, 0);
  for_each_reader(
    [&](std::size_t var, handle_id) { ++first_reader_[var + 1]; });
  sum_up(first_reader_);
  readers_.resize(first_reader_.back());
  auto next = first_reader_;
  for_each_reader(
    [&](std::size_t var, handle_id op) { readers_[next[var]++] = op; });
}

void access_list::list_delayed_readers(const ssa_graph& g) {
  const auto var_of = [&](const delayed_input& d) {
    return g.op(d.op).inputs[d.input] - g.ops.size();
  };
  first_delayed_reader_.assign(g.vars.size() + 1, 0);
  for (auto& d : g.delayed_inputs)
    ++first_delayed_reader_[var_of(d) + 1];
  sum_up(first_delayed_reader_);
  delayed_readers_.resize(g.delayed_inputs.size());
  auto next = first_delayed_reader_;
  for (auto& d : g.delayed_inputs)
    delayed_readers_[next[var_of(d)]++] = {d.op, d.distance};
}

void access_list::list_versions(const ssa_graph& g) {
  std::vector<std::size_t> next(g.num_storages + 1);
  for (auto& v : g.vars)
    ++next[v.storage + 1];
  sum_up(next);
  const auto first = next;
  versions_.resize(g.vars.size());
  storages_.resize(g.num_storages);
  for (std::size_t i = 0; i < g.vars.size(); ++i) {
    auto& v = g.vars[i];
    const auto of_this = [i](const auto& all, const auto& begin) {
      return begin.empty()
               ? std::span{all}.first(0)
               : std::span{all}.subspan(begin[i], begin[i + 1] - begin[i]);
    };
    versions_[next[v.storage]++] = {
      v.id, v.generator, of_this(std::as_const(readers_), first_reader_),
      of_this(std::as_const(delayed_readers_), first_delayed_reader_)};
    storages_[v.storage].persistable = v.persistable;
  }
  for (std::size_t s = 0; s < storages_.size(); ++s) {
    const auto versions =
      std::span{versions_}.subspan(first[s], first[s + 1] - first[s]);
    sort_by_version(g, versions);
    storages_[s].versions = versions;
  }
}

} // namespace troupe::graph
