// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

/// Input is [steps, batch, width], Out is [steps, batch, directions * hidden],
/// and State has the shape of PreState. Only the kernel knows the contents of
/// Reserve and DropoutState.
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
  s.output("DropoutState", dims, dtype::uint8);
}

/// Number of units of a cell. Checks that Weight is [units, gates * units] and
/// that Input has gates * units columns.
std::int64_t units_of(const shape_inference& s, std::int64_t gates) {
  const auto& weight = s.dims("Weight");
  const auto& input = s.dims("Input");
  s.check(weight.rank() == 2 && fits(weight[1], gates * weight[0]), "Weight",
          "[units, " + std::to_string(gates) + " * units]");
  s.check(input.rank() == 2 && fits(input[1], weight[1]), "Input",
          "of as many columns as Weight");
  return weight[0];
}

void infer_lstm(shape_inference& s) {
  const auto& input = s.dims("Input");
  const shape states{input[0], units_of(s, 4)};
  s.output("Hidden", states, s.type("Input"));
  s.output("Cell", states, s.type("Input"));
  s.output("BatchGate", input, s.type("Input"));
  s.output("BatchCellPreAct", states, s.type("Input"));
}

void infer_gru(shape_inference& s) {
  const auto& input = s.dims("Input");
  const shape states{input[0], units_of(s, 3)};
  s.output("Hidden", states, s.type("Input"));
  s.output("BatchGate", input, s.type("Input"));
  s.output("BatchResetHiddenPrev", states, s.type("Input"));
  s.output("BatchHidden", states, s.type("Input"));
}

void infer_gru_unit(shape_inference& s) {
  const auto& input = s.dims("Input");
  const shape states{input[0], units_of(s, 3)};
  s.output("Gate", input, s.type("Input"));
  s.output("ResetHiddenPrev", states, s.type("Input"));
  s.output("Hidden", states, s.type("Input"));
}

void add_older(op_schema_table& table) {
  constexpr auto optional = slot_arity::optional;
  add(table,
      {{.type = "lstm",
        .inputs = {{"Input"},
                   {"Weight"},
                   {"Bias", optional},
                   {"H0", optional},
                   {"C0", optional}},
        .outputs = {{"Hidden"}, {"Cell"}, {"BatchGate"}, {"BatchCellPreAct"}},
        .infer = infer_lstm,
        .gradient = {.groups = {{"Input", "Weight", "Bias", "H0", "C0"}},
                     .reads = {"Input", "Weight", "Bias", "H0", "C0", "Hidden",
                               "Cell", "BatchGate", "BatchCellPreAct"},
                     .outputs = {"Hidden"}}},
       {.type = "gru",
        .inputs = {{"Input"}, {"Weight"}, {"Bias", optional}, {"H0", optional}},
        .outputs = {{"Hidden"},
                    {"BatchGate"},
                    {"BatchResetHiddenPrev"},
                    {"BatchHidden"}},
        .infer = infer_gru,
        .gradient = {.groups = {{"Input", "Weight", "Bias", "H0"}},
                     .reads = {"Input", "Weight", "H0", "BatchGate",
                               "BatchResetHiddenPrev", "BatchHidden"},
                     .outputs = {"Hidden"}}},
       {.type = "gru_unit",
        .inputs = {{"Input"}, {"HiddenPrev"}, {"Weight"}, {"Bias", optional}},
        .outputs = {{"Gate"}, {"ResetHiddenPrev"}, {"Hidden"}},
        .infer = infer_gru_unit,
        .gradient = {
          .groups = {{"Input", "HiddenPrev", "Weight", "Bias"}},
          .reads = {"Input", "HiddenPrev", "Weight", "Gate", "ResetHiddenPrev"},
          .outputs = {"Hidden"}}}});
}

} // namespace

void add_recurrent(op_schema_table& table) {
  add_older(table);
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
                                      "SequenceLength", "Out", "DropoutState",
                                      "Reserve"},
                            .outputs = {"Out", "State"}},
               .is_test = "is_test",
               .uses_batch = true}});
}

} // namespace troupe::graph::schemas
