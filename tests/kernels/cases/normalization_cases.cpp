// SPDX-License-Identifier: Apache-2.0
#include <kernels/cases/cases.hpp>

namespace troupe::test {

op_case batch_norm_case(const shape& x, attribute_map attributes) {
  const shape channels{x[1]};
  return {.type = "batch_norm",
          .inputs = {{"X", {random_values(x, 1, -1, 3)}},
                     {"Scale", {random_values(channels, 2, 0.5, 2)}},
                     {"Bias", {random_values(channels, 3)}},
                     {"Mean", {random_values(channels, 4)}},
                     {"Variance", {random_values(channels, 5, 0.5, 2)}}},
          .attributes = std::move(attributes),
          .outputs = {{"Y", 1},
                      {"MeanOut", 1},
                      {"VarianceOut", 1},
                      {"SavedMean", 1},
                      {"SavedVariance", 1}},
          .in_place = {{"MeanOut", "Mean"}, {"VarianceOut", "Variance"}},
          .gradient =
            gradient_slots{{"Y"},
                           {"X", "Scale", "Bias", "SavedMean", "SavedVariance"},
                           {"X", "Scale", "Bias"}}};
}

namespace {

/// With the running statistics, which then take the place of saved ones.
op_case fixed(const shape& x, const std::string& attribute) {
  auto c = batch_norm_case(x, {{attribute, true}});
  c.outputs.erase("SavedMean");
  c.outputs.erase("SavedVariance");
  c.gradient->kept = {"X", "Scale", "Bias", "Mean", "Variance"};
  return c;
}

op_case layer_norm(const shape& x, int axis, float epsilon = 1e-5f) {
  const shape width{x.numel(static_cast<std::size_t>(axis), x.rank())};
  return {.type = "layer_norm",
          .inputs = {{"X", {random_values(x, 1, -1, 3)}},
                     {"Scale", {random_values(width, 2, 0.5, 2)}},
                     {"Bias", {random_values(width, 3)}}},
          .attributes = {{"begin_norm_axis", axis}, {"epsilon", epsilon}},
          .outputs = {{"Y", 1}, {"Mean", 1}, {"Variance", 1}},
          .gradient = gradient_slots{{"Y"},
                                     {"X", "Scale", "Bias", "Mean", "Variance"},
                                     {"X", "Scale", "Bias"}}};
}

op_case without(op_case c, const std::string& slot) {
  c.inputs.erase(slot);
  std::erase(c.gradient->kept, slot);
  std::erase(c.gradient->wanted, slot);
  return c;
}

} // namespace

std::vector<op_case> normalization_cases() {
  return {
    batch_norm_case({4, 3, 2, 3}),
    batch_norm_case({5, 4}),
    batch_norm_case({1, 2, 3, 2}),
    batch_norm_case({2, 1}),
    batch_norm_case({3, 2, 4}),
    batch_norm_case({4, 3, 2, 2}, {{"momentum", 0.8f}, {"epsilon", 1e-3f}}),
    batch_norm_case({1, 3}),
    batch_norm_case({1, 3, 1, 1}),
    batch_norm_case({0, 3, 2, 2}),
    fixed({4, 3, 2, 2}, "use_global_stats"),
    fixed({5, 4}, "use_global_stats"),
    fixed({1, 4}, "use_global_stats"),
    fixed({4, 3, 2, 2}, "is_test"),
    fixed({0, 3, 2, 2}, "is_test"),
    forward_only(batch_norm_case({6, 17, 9, 7})),
    forward_only(batch_norm_case({64, 33})),
    forward_only(fixed({6, 17, 9, 7}, "is_test")),
    layer_norm({3, 5}, 1),
    layer_norm({2, 3, 4}, 2),
    layer_norm({2, 3, 4}, 1, 1e-3f),
    layer_norm({4, 1}, 1),
    layer_norm({0, 5}, 1),
    without(layer_norm({3, 5}, 1), "Scale"),
    without(layer_norm({3, 5}, 1), "Bias"),
    without(without(layer_norm({3, 5}, 1), "Scale"), "Bias"),
    forward_only(layer_norm({7, 769}, 1)),
    forward_only(layer_norm({3, 5, 64}, 2)),
  };
}

} // namespace troupe::test
