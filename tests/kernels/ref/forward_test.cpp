// SPDX-License-Identifier: Apache-2.0
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace troupe::test {

TEST_SUITE("kernels.ref.forward") {

namespace {

using ints = std::vector<std::int32_t>;

op_value of(const shape& dims, std::vector<double> elements) {
  return values_of(dims, std::move(elements), dtype::float64);
}

op_value labels(const shape& dims, std::vector<double> elements) {
  return values_of(dims, std::move(elements), dtype::int64);
}

/// Runs `c` and checks its first output `slot`.
void check(const op_case& c, const std::string& slot,
           const op_value& expected) {
  const auto results = run_op(reference_kernels(), c);
  const auto text = difference(results.at(slot)[0], expected, 1e-12);
  CHECK_MESSAGE(text.empty(), describe(c), "\n  ", slot, ": ", text);
}

op_value counting(const shape& dims) {
  std::vector<double> elements;
  for (std::int64_t i = 1; i <= dims.numel(); ++i)
    elements.push_back(static_cast<double>(i));
  return of(dims, std::move(elements));
}

op_case pool(attribute_map attributes) {
  return {.type = "pool2d",
          .inputs = {{"X", {counting({1, 1, 3, 3})}}},
          .attributes = std::move(attributes)};
}

op_case batch_norm(attribute_map attributes) {
  return {.type = "batch_norm",
          .inputs = {{"X", {of({2, 1, 1, 2}, {1, 3, 5, 7})}},
                     {"Scale", {of({1}, {2})}},
                     {"Bias", {of({1}, {10})}},
                     {"Mean", {of({1}, {3})}},
                     {"Variance", {of({1}, {4})}}},
          .attributes = std::move(attributes),
          .outputs = {{"Y", 1},
                      {"MeanOut", 1},
                      {"VarianceOut", 1},
                      {"SavedMean", 1},
                      {"SavedVariance", 1}}};
}

} // namespace

TEST_CASE("matrix products are those computed by hand") {
  const auto x = counting({2, 3}), y = counting({3, 2});
  const auto expected = of({2, 2}, {22, 28, 49, 64});
  check({.type = "mul", .inputs = {{"X", {x}}, {"Y", {y}}}}, "Out", expected);
  check({.type = "matmul_v2", .inputs = {{"X", {x}}, {"Y", {y}}}}, "Out",
        expected);
  check({.type = "matmul_v2",
         .inputs = {{"X", {x}}, {"Y", {x}}},
         .attributes = {{"trans_y", true}}},
        "Out", of({2, 2}, {14, 32, 32, 77}));
  check({.type = "matmul_v2",
         .inputs = {{"X", {counting({3})}}, {"Y", {counting({3})}}}},
        "Out", of({}, {14}));
}

TEST_CASE("elementwise ops broadcast Y from the axis given") {
  op_case c{.type = "elementwise_sub",
            .inputs = {{"X", {counting({2, 2})}}, {"Y", {of({2}, {10, 20})}}},
            .attributes = {{"axis", -1}}};
  check(c, "Out", of({2, 2}, {-9, -18, -7, -16}));
  c.attributes.set("axis", 0);
  check(c, "Out", of({2, 2}, {-9, -8, -17, -16}));
}

TEST_CASE("activations have their known values") {
  auto at = [](const char* type, double x, double y, bool approximate = false) {
    check({.type = type,
           .inputs = {{"X", {of({1}, {x})}}},
           .attributes = {{"approximate", approximate}}},
          "Out", of({1}, {y}));
  };
  at("relu", -2, 0);
  at("relu", 2, 2);
  at("sigmoid", std::log(3), 0.75);
  at("tanh", std::log(2), 0.6);
  at("square", -3, 9);
  at("gelu", 1, 0.841344746068543);
  at("gelu", 1, 0.841191990608276, true);
}

TEST_CASE("softmax and cross entropy follow their definition") {
  const auto logits = of({2, 2}, {0, std::log(3), std::log(4), 0});
  check({.type = "softmax", .inputs = {{"X", {logits}}}}, "Out",
        of({2, 2}, {0.25, 0.75, 0.8, 0.2}));
  op_case loss{
    .type = "softmax_with_cross_entropy",
    .inputs = {{"Logits", {logits}}, {"Label", {labels({2, 1}, {1, 0})}}},
    .outputs = {{"Softmax", 1}, {"Loss", 1}}};
  check(loss, "Loss", of({2, 1}, {-std::log(0.75), -std::log(0.8)}));
  loss.attributes.set("ignore_index", 1);
  check(loss, "Loss", of({2, 1}, {0, -std::log(0.8)}));
  loss.attributes.set("soft_label", true);
  loss.inputs["Label"] = {of({2, 2}, {1, 0, 0.5, 0.5})};
  check(loss, "Loss",
        of({2, 1}, {-std::log(0.25), -(std::log(0.8) + std::log(0.2)) / 2}));
}

TEST_CASE("reductions give the shapes of Paddle 2") {
  const auto x = counting({2, 3});
  auto reduced = [&](const char* type, attribute_map a, const op_value& y) {
    check({.type = type, .inputs = {{"X", {x}}}, .attributes = std::move(a)},
          "Out", y);
  };
  reduced("mean", {}, of({}, {3.5}));
  reduced("reduce_sum", {{"dim", ints{0}}}, of({3}, {5, 7, 9}));
  reduced("reduce_mean", {{"dim", ints{-1}}, {"keep_dim", true}},
          of({2, 1}, {2, 5}));
  reduced("reduce_sum", {{"reduce_all", true}}, of({}, {21}));
}

TEST_CASE("a convolution is the sum computed by hand") {
  op_case c{.type = "conv2d",
            .inputs = {{"Input", {counting({1, 1, 3, 3})}},
                       {"Filter", {of({1, 1, 2, 2}, {1, 2, 3, 4})}}},
            .attributes = {{"strides", ints{1, 1}}},
            .outputs = {{"Output", 1}}};
  check(c, "Output", of({1, 1, 2, 2}, {37, 47, 67, 77}));
  c.attributes.set("dilations", ints{2, 2});
  check(c, "Output", of({1, 1, 1, 1}, {1 + 6 + 21 + 36}));
  c.attributes.set("dilations", ints{1, 1});
  c.attributes.set("strides", ints{2, 2});
  c.attributes.set("paddings", ints{1, 0, 1, 0}); // above and left
  check(c, "Output", of({1, 1, 2, 2}, {4, 18, 36, 77}));
  // SAME with stride 2 on 3 elements: 2 positions, one element behind.
  c.attributes.set("padding_algorithm", "SAME");
  check(c, "Output", of({1, 1, 2, 2}, {37, 21, 23, 9}));
}

TEST_CASE("average pooling counts padding only when it is inclusive") {
  attribute_map a{{"pooling_type", "avg"},
                  {"ksize", ints{2, 2}},
                  {"strides", ints{2, 2}},
                  {"paddings", ints{1, 1}}};
  check(pool(a), "Out", of({1, 1, 2, 2}, {1, 2.5, 5.5, 7}));
  a.set("exclusive", false);
  check(pool(a), "Out", of({1, 1, 2, 2}, {0.25, 1.25, 2.75, 7}));
}

TEST_CASE("an inclusive window ends with the padded input") {
  check(pool({{"pooling_type", "avg"},
              {"ksize", ints{2, 2}},
              {"strides", ints{2, 2}},
              {"ceil_mode", true},
              {"exclusive", false}}),
        "Out", of({1, 1, 2, 2}, {3, 4.5, 7.5, 9}));
}

TEST_CASE("max pooling takes the largest element of each window") {
  check(pool({{"pooling_type", "max"},
              {"ksize", ints{2, 2}},
              {"strides", ints{1, 1}}}),
        "Out", of({1, 1, 2, 2}, {5, 6, 8, 9}));
  check(
    pool({{"pooling_type", "avg"}, {"ksize", ints{2, 2}}, {"adaptive", true}}),
    "Out", of({1, 1, 2, 2}, {3, 4, 6, 7}));
}

TEST_CASE("batch_norm uses and moves statistics as Paddle does") {
  const auto c = batch_norm({{"momentum", 0.75f}, {"epsilon", 0.0f}});
  const double deviation = std::sqrt(5.0); // of 1, 3, 5, 7 around 4
  check(c, "Y",
        of({2, 1, 1, 2}, {10 - 6 / deviation, 10 - 2 / deviation,
                          10 + 2 / deviation, 10 + 6 / deviation}));
  check(c, "SavedMean", of({1}, {4}));
  check(c, "SavedVariance", of({1}, {1 / deviation}));
  check(c, "MeanOut", of({1}, {0.75 * 3 + 0.25 * 4}));
  check(c, "VarianceOut", of({1}, {0.75 * 4 + 0.25 * 5}));
  const auto test = batch_norm({{"epsilon", 0.0f}, {"is_test", true}});
  check(test, "Y", of({2, 1, 1, 2}, {8, 10, 12, 14}));
  check(test, "MeanOut", of({1}, {3}));
}

TEST_CASE("layer_norm normalizes each row") {
  const op_case c{.type = "layer_norm",
                  .inputs = {{"X", {of({2, 2}, {1, 3, 10, 20})}},
                             {"Scale", {of({2}, {1, 2})}},
                             {"Bias", {of({2}, {0, 5})}}},
                  .attributes = {{"epsilon", 0.0f}},
                  .outputs = {{"Y", 1}, {"Mean", 1}, {"Variance", 1}}};
  check(c, "Y", of({2, 2}, {-1, 7, -1, 7}));
  check(c, "Mean", of({2}, {2, 15}));
  check(c, "Variance", of({2}, {1, 25}));
}

TEST_CASE("ops that move elements put them where numpy does") {
  const auto x = counting({2, 3});
  check({.type = "transpose2",
         .inputs = {{"X", {x}}},
         .attributes = {{"axis", ints{1, 0}}}},
        "Out", of({3, 2}, {1, 4, 2, 5, 3, 6}));
  check({.type = "reshape2",
         .inputs = {{"X", {x}}},
         .attributes = {{"shape", ints{-1, 2}}}},
        "Out", counting({3, 2}));
  check({.type = "slice",
         .inputs = {{"Input", {x}}},
         .attributes = {{"axes", ints{1}},
                        {"starts", ints{-2}},
                        {"ends", ints{100}}}},
        "Out", of({2, 2}, {2, 3, 5, 6}));
  check({.type = "concat",
         .inputs = {{"X", {x, of({2, 1}, {7, 8})}}},
         .attributes = {{"axis", 1}}},
        "Out", of({2, 4}, {1, 2, 3, 7, 4, 5, 6, 8}));
  check({.type = "flatten_contiguous_range",
         .inputs = {{"X", {counting({2, 1, 3})}}},
         .attributes = {{"start_axis", 0}, {"stop_axis", 1}},
         .outputs = {{"Out", 1}, {"XShape", 1}}},
        "XShape", of({0, 2, 1, 3}, {}));
}

TEST_CASE("split gives its parts in order") {
  const op_case c{.type = "split",
                  .inputs = {{"X", {counting({1, 5})}}},
                  .attributes = {{"sections", ints{2, -1}}, {"axis", 1}},
                  .outputs = {{"Out", 2}}};
  const auto parts = run_op(reference_kernels(), c).at("Out");
  CHECK(difference(parts[0], of({1, 2}, {1, 2}), 0) == "");
  CHECK(difference(parts[1], of({1, 3}, {3, 4, 5}), 0) == "");
}

TEST_CASE("top_k_v2 and accuracy count right labels") {
  const op_case top{.type = "top_k_v2",
                    .inputs = {{"X", {of({2, 3}, {1, 5, 3, 9, 7, 8})}}},
                    .attributes = {{"k", 2}},
                    .outputs = {{"Out", 1}, {"Indices", 1}}};
  check(top, "Out", of({2, 2}, {5, 3, 9, 8}));
  check(top, "Indices", labels({2, 2}, {1, 2, 0, 2}));
  const op_case c{.type = "accuracy",
                  .inputs = {{"Out", {of({2, 2}, {5, 3, 9, 8})}},
                             {"Indices", {labels({2, 2}, {1, 2, 0, 2})}},
                             {"Label", {labels({2, 1}, {2, 1})}}},
                  .outputs = {{"Accuracy", 1}, {"Correct", 1}, {"Total", 1}}};
  check(c, "Accuracy", values_of({}, {0.5}));
  check(c, "Correct", values_of({}, {1}, dtype::int32));
  check(c, "Total", values_of({}, {2}, dtype::int32));
}
} // TEST_SUITE("kernels.ref.forward")

} // namespace troupe::test
