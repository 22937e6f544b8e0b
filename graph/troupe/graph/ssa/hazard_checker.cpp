// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/ssa/hazard_checker.hpp>

#include <troupe/base/error.hpp>
#include <troupe/graph/ssa/reachability.hpp>
#include <troupe/graph/ssa/storage_accesses.hpp>

#include <utility>

namespace troupe::graph {

namespace {

// The pairs of accesses whose order proves the order of all others.
//
// Accesses to a storage form a chain: the writer of a version, its readers, the
// writer of the next version. For a persistable variable, the chain of a step
// is followed by that of the next step. If each link is ordered, any two
// conflicting accesses are ordered: within a step and to the next one along the
// chain, over more steps by the implicit edges of ops to themselves. The
// storage of other variables is not used by another step before its own step
// has ended.
class obligations {
public:
  explicit obligations(std::uint32_t steps_in_flight)
    : steps_in_flight_(steps_in_flight) {}

  void add(const storage_accesses& storage);

  std::vector<order_query> queries;
  std::vector<handle_id> variables; ///< a version of each query's variable

private:
  void require(handle_id first, handle_id second, std::uint32_t distance,
               handle_id variable);
  void add_step_boundary(const storage_accesses& storage);

  std::uint32_t steps_in_flight_;
};

void obligations::require(handle_id first, handle_id second,
                          std::uint32_t distance, handle_id variable) {
  if (first == no_handle || first == second)
    return;
  queries.push_back({first, second, distance});
  variables.push_back(variable);
}

void obligations::add(const storage_accesses& storage) {
  const version_accesses* old = nullptr;
  for (auto& v : storage.versions) {
    for (auto reader : v.readers)
      require(v.writer, reader, 0, v.var);
    // Steps farther back have ended.
    for (auto& reader : v.delayed_readers)
      if (reader.distance < steps_in_flight_)
        require(v.writer, reader.op, reader.distance, v.var);
    if (old != nullptr) {
      for (auto reader : old->readers)
        require(reader, v.writer, 0, v.var);
      if (old->readers.empty())
        require(old->writer, v.writer, 0, v.var);
    }
    old = &v;
  }
  if (storage.persistable && steps_in_flight_ > 1)
    add_step_boundary(storage);
}

void obligations::add_step_boundary(const storage_accesses& storage) {
  auto* first = storage.first_written();
  if (first == nullptr)
    return;
  auto& last = storage.versions.back();
  auto read_first = false;
  if (auto* initial = storage.initial()) {
    read_first = !initial->readers.empty();
    for (auto reader : initial->readers)
      require(last.writer, reader, 1, initial->var);
  }
  for (auto reader : last.readers)
    require(reader, first->writer, 1, first->var);
  if (!read_first && last.readers.empty())
    require(last.writer, first->writer, 1, first->var);
}

std::string describe(const ssa_graph& g, const hazard& h) {
  auto text = "nothing orders " + handle_name(g, h.first) + " and "
              + handle_name(g, h.second);
  if (h.distance == 1)
    text += " of the next step";
  else if (h.distance > 1)
    text += " " + std::to_string(h.distance) + " steps later";
  return text + ", which both use \"" + h.variable + "\" and one writes";
}

} // namespace

std::vector<hazard> find_hazards(const ssa_graph& g,
                                 std::uint32_t steps_in_flight) {
  reachability reach{g};
  obligations needed{steps_in_flight};
  for (auto& storage : access_list{g})
    needed.add(storage);
  std::vector<hazard> hazards;
  for (auto i : reach.find_unordered(needed.queries)) {
    auto& query = needed.queries[i];
    auto& v = g.var(needed.variables[i]);
    hazards.push_back({query.first, query.second, query.distance,
                       std::string{v.name}, v.device});
  }
  return hazards;
}

void check_hazards(const ssa_graph& g, std::uint32_t steps_in_flight) {
  auto hazards = find_hazards(g, steps_in_flight);
  if (hazards.empty())
    return;
  auto& worst = hazards.front();
  error_context where;
  where.op = handle_name(g, worst.second);
  where.op_type = g.op(worst.second).desc->type;
  where.variable = worst.variable;
  where.device = to_string(g.devices[worst.device]);
  where.call_stack = g.op(worst.second).desc->call_stack();
  throw error{errc::graph_invalid, describe(g, worst), std::move(where)};
}

} // namespace troupe::graph
