// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/reachability.hpp>

#include <troupe/graph/ssa/topological_order.hpp>

#include <algorithm>
#include <utility>

namespace troupe::graph {

namespace {

using bits = std::uint64_t;
constexpr std::size_t bits_per_pass = 64;

// Length of the longest prefix of `queries` with one distance and at most 64
// different `first` handles. Queries with the same `first` are adjacent.
std::size_t batch_size(std::span<const order_query* const> queries) {
  std::size_t firsts = 1;
  for (std::size_t i = 1; i < queries.size(); ++i) {
    firsts += queries[i]->first != queries[i - 1]->first;
    if (firsts > bits_per_pass
        || queries[i]->distance != queries.front()->distance)
      return i;
  }
  return queries.size();
}

} // namespace

reachability::reachability(const ssa_graph& g)
  : num_ops_(g.ops.size()), targets_(g, UINT32_MAX),
    order_(topological_order(g, targets_)), position_(g.size()),
    depth_(g.size()) {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const auto id = order_[i];
    position_[id] = i;
    for (auto& t : targets_[id])
      if (t.distance == 0)
        depth_[t.to] = std::max(depth_[t.to], depth_[id] + 1);
  }
}

// Calls visit(handle, distance) for handles one or two edges away from `from`.
// The chain to such a handle contains an op, and each op waits for itself in
// the previous step. The handle therefore waits for `from` of the step that is
// `distance` back and of all earlier ones. A single edge between two variables
// contains no op and is skipped.
template <class Visit>
void reachability::visit_near(handle_id from, Visit visit) const {
  for (auto& one : targets_[from]) {
    if (from < num_ops_ || one.to < num_ops_)
      visit(one.to, one.distance);
    for (auto& two : targets_[one.to])
      visit(two.to, one.distance + two.distance);
  }
}

reachability::query_list
reachability::drop_near(const query_list& queries) const {
  constexpr auto not_near = UINT32_MAX;
  std::vector<std::uint32_t> nearest(order_.size(), not_near);
  query_list open;
  auto first = no_handle;
  for (auto* query : queries) {
    if (first != query->first) {
      if (first != no_handle)
        visit_near(first, [&](handle_id id, auto) { nearest[id] = not_near; });
      first = query->first;
      visit_near(first, [&](handle_id id, std::uint32_t distance) {
        nearest[id] = std::min(nearest[id], distance);
      });
    }
    if (nearest[query->second] > query->distance)
      open.push_back(query);
  }
  return open;
}

/// For the handles of one step: one bit per `first` of a batch that reaches the
/// handle. Only handles in a window of the topological order are stored,
/// because chains that leave the window lead to no `second`.
struct reachability::step_bits {
  step_bits(std::size_t first, std::size_t end)
    : begin(first), bits_of(end > first ? end - first : 0) {}

  /// @param position from `begin` on
  void add(std::size_t position, bits more) {
    if (position - begin < bits_of.size())
      bits_of[position - begin] |= more;
  }

  std::size_t begin;
  std::vector<bits> bits_of;
};

// Propagates the bits of the first of `steps` along the edges, to handles of
// this step and of later ones.
void reachability::flow(std::span<step_bits> steps) const {
  auto& now = steps.front();
  for (std::size_t i = 0; i < now.bits_of.size(); ++i) {
    const auto reached = now.bits_of[i];
    if (reached == 0)
      continue;
    const auto id = order_[now.begin + i];
    if (id < num_ops_ && steps.size() > 1)
      steps[1].add(position_[id], reached);
    for (auto& t : targets_[id])
      if (t.distance < steps.size())
        steps[t.distance].add(position_[t.to], reached);
  }
}

// Answers a batch of queries with one distance and at most 64 different `first`
// handles, each of which has a bit. Returns the queries whose answer is no.
reachability::query_list
reachability::drop_reached(std::span<const order_query* const> queries) const {
  const auto distance = queries.front()->distance;
  auto begin = order_.size();
  std::size_t end = 0;
  for (auto* query : queries) {
    begin = std::min(begin, position_[query->first]);
    end = std::max(end, position_[query->second] + 1);
  }
  std::vector<step_bits> steps;
  for (std::uint32_t step = 0; step <= distance; ++step)
    steps.emplace_back(step == 0 ? begin : 0,
                       step == distance ? end : order_.size());
  std::vector<bits> bit_of_query;
  bits bit = 1;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    if (i > 0 && queries[i]->first != queries[i - 1]->first)
      bit <<= 1;
    bit_of_query.push_back(bit);
    steps.front().add(position_[queries[i]->first], bit);
  }
  for (std::uint32_t step = 0; step <= distance; ++step)
    flow(std::span{steps}.subspan(step));
  query_list open;
  const auto& last = steps.back();
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const auto second = position_[queries[i]->second];
    if (second < last.begin
        || (last.bits_of[second - last.begin] & bit_of_query[i]) == 0)
      open.push_back(queries[i]);
  }
  return open;
}

std::vector<std::size_t>
reachability::find_unordered(const std::vector<order_query>& queries) const {
  query_list open;
  open.reserve(queries.size());
  for (auto& query : queries)
    open.push_back(&query);
  const auto by_first = [](auto* a, auto* b) {
    return std::pair{a->first, a->distance} < std::pair{b->first, b->distance};
  };
  if (!std::ranges::is_sorted(open, by_first))
    std::ranges::sort(open, by_first);
  open = drop_near(open);
  std::vector<bool> unordered(queries.size());
  const auto give_up = [&](auto* query) {
    unordered[static_cast<std::size_t>(query - queries.data())] = true;
  };
  std::erase_if(open, [&](auto* query) {
    const auto is_hopeless =
      query->distance == 0 && !may_precede(query->first, query->second);
    if (is_hopeless)
      give_up(query);
    return is_hopeless;
  });
  std::sort(open.begin(), open.end(), [this](auto* a, auto* b) {
    return std::pair{a->distance, position_[a->first]}
           < std::pair{b->distance, position_[b->first]};
  });
  for (std::span<const order_query* const> rest{open}; !rest.empty();) {
    auto size = batch_size(rest);
    for (auto* query : drop_reached(rest.first(size)))
      give_up(query);
    rest = rest.subspan(size);
  }
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < unordered.size(); ++i)
    if (unordered[i])
      positions.push_back(i);
  return positions;
}

} // namespace troupe::graph
