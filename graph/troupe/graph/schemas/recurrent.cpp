// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

/// Input [steps, batch, width]: Out [steps, batch, directions * hidden], State
/// like PreState. What Reserve and DropoutState hold is the kernel's affair.
void infer_rnn(shape_inference& s) {
  const auto& a = s.attributes();
  auto dims = s.dims("Input");
  s.check(dims.rank() == 3, "Input", "of rank 3, [steps, batch, width]");
  const auto hidden = a.get_int("hidden_size", 100);
  const std::int64_t directions = a.get_bool("is_bidirec", false) ? 2 : 1;
  dims[2] = directions * hidden;
  for (std::size_t i = 0; i < s.num_inputs("PreState"); ++i) {
    const auto& state = s.dims("PreState", i);
    s.check(state.rank() == 3 && fits(state[2], hidden), "PreState",
            "[layers * directions, batch, " + std::to_string(hidden) + "]", i);
    s.output("State", state, s.type("Input"), i);
  }
  s.output("Out", dims, s.type("Input"));
  s.output("Reserve", {-1}, s.type("Input"));
  s.output("DropoutState", {-1}, dtype::uint8);
}

} // namespace

void add_recurrent(op_schema_table& table) {
  constexpr auto many = slot_arity::many;
  constexpr auto optional = slot_arity::optional;
  add(table, {{.type = "rnn",
               .inputs = {{"Input"},
                          {"PreState", many},
                          {"WeightList", many},
                          {"SequenceLength", optional}},
               .outputs = {{"Out"},
                           {"State", many},
                           {"Reserve", optional},
                           {"DropoutState", optional}},
               .infer = infer_rnn,
               .gradient = {.groups = {{"Input", "PreState", "WeightList"}},
                            .reads = {"Input", "PreState", "WeightList",
                                      "SequenceLength", "Out", "Reserve"},
                            .outputs = {"Out", "State"}},
               .is_test = "is_test"}});
}

} // namespace troupe::graph::schemas
