// SPDX-License-Identifier: Apache-2.0
#include "brute_force.hpp"

#include <troupe/base/assert.hpp>

#include <bitset>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::graph::testing {

namespace {

constexpr std::size_t max_nodes = 1024;
using row = std::bitset<max_nodes>;

// before[i][j]: node j waits for node i. Node of handle h in step s: s * n + h.
class unrolled {
public:
  unrolled(const ssa_graph& g, std::uint32_t steps)
    : n_(g.size()), before_(n_ * steps) {
    TROUPE_ASSERT(before_.size() <= max_nodes);
    for (std::size_t s = 0; s < steps; ++s) {
      for (auto& e : g.edges)
        if (s + e.distance < steps)
          before_[node(s, e.from)][node(s + e.distance, e.to)] = true;
      for (std::size_t op = 0; op < g.ops.size() && s + 1 < steps; ++op)
        before_[node(s, op)][node(s + 1, op)] = true;
    }
  }

  // The last step is admitted when the first has wholly ended.
  void admit_last_step() {
    auto last = before_.size() / n_ - 1;
    for (std::size_t from = 0; from < n_; ++from)
      for (std::size_t to = 0; to < n_; ++to)
        before_[node(0, from)][node(last, to)] = true;
  }

  void close() {
    auto size = before_.size();
    for (std::size_t via = 0; via < size; ++via)
      for (std::size_t from = 0; from < size; ++from)
        if (before_[from][via])
          before_[from] |= before_[via];
  }

  bool operator==(const unrolled&) const = default;

  bool ordered(std::size_t step_a, handle_id a, std::size_t step_b,
               handle_id b) const {
    return before_[node(step_a, a)][node(step_b, b)];
  }

private:
  std::size_t node(std::size_t step, std::size_t handle) const {
    return step * n_ + handle;
  }

  std::size_t n_;
  std::vector<row> before_;
};

struct access {
  handle_id op;
  std::uint32_t place; ///< 2 * version for its writer, one more for readers
  bool write;
};

struct storage {
  bool persistable = false;
  std::vector<access> accesses;
};

using storage_map = std::map<std::pair<std::string, std::size_t>, storage>;

void add_access(storage_map& storages, const var_handle& v, handle_id op,
                bool write) {
  auto& s = storages[{std::string(v.name), v.device}];
  s.persistable = v.persistable;
  s.accesses.push_back({op, 2 * v.version + (write ? 0U : 1U), write});
}

storage_map find_storages(const ssa_graph& g) {
  storage_map storages;
  for (auto& op : g.ops) {
    for (auto id : op.inputs)
      add_access(storages, g.var(id), op.id, false);
    for (auto id : op.outputs)
      add_access(storages, g.var(id), op.id, true);
  }
  return storages;
}

// Must a of a step be over before b of the step `distance` later begins?
bool conflict(const storage& s, const access& a, const access& b,
              std::uint32_t distance, std::uint32_t steps_in_flight) {
  if (!a.write && !b.write)
    return false;
  if (distance == 0)
    return a.op != b.op && a.place < b.place;
  return s.persistable || distance == steps_in_flight;
}

} // namespace

bool brute_force_ordered(const ssa_graph& g, std::uint32_t steps_in_flight) {
  unrolled steps{g, steps_in_flight + 1};
  steps.admit_last_step();
  steps.close();
  for (auto& [key, s] : find_storages(g))
    for (auto& a : s.accesses)
      for (auto& b : s.accesses)
        for (std::uint32_t d = 0; d <= steps_in_flight; ++d)
          for (std::uint32_t step = 0; step + d <= steps_in_flight; ++step)
            if (conflict(s, a, b, d, steps_in_flight)
                && !steps.ordered(step, a.op, step + d, b.op))
              return false;
  return true;
}

bool brute_force_same_order(const ssa_graph& a, const ssa_graph& b,
                            std::uint32_t steps) {
  unrolled first{a, steps};
  unrolled second{b, steps};
  first.close();
  second.close();
  return first == second;
}

} // namespace troupe::graph::testing
