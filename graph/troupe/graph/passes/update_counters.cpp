// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/passes/update_counters.hpp>

#include <algorithm>
#include <cstdint>

namespace troupe::graph {

namespace {

bool is_counter(const block& b, const op_desc& op) {
  if (op.type != "increment" || op.role() != role_forward)
    return false;
  const auto& counter = op.only_output("Out");
  const auto* var = b.find_var(counter);
  return var != nullptr && var->persistable && op.only_input("X") == counter;
}

} // namespace

program mark_update_counters(program p) {
  auto& b = p.main();
  for (auto& op : b.ops)
    if (is_counter(b, op))
      op.attributes.set("op_role", std::int32_t{role_optimize});
  return p;
}

bool has_update_counters(const program& p) {
  return std::ranges::any_of(
    p.main().ops, [&](const op_desc& op) { return is_counter(p.main(), op); });
}

} // namespace troupe::graph
