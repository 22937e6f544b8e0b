// SPDX-License-Identifier: Apache-2.0
// The parts of a synchronised batch norm compute the same however their images
// lie, and with a relu behind them the same as the single ops. That they
// compute a batch norm: tests/actors.
#include <kernels/cpu/op_chain.hpp>
#include <support/caught.hpp>
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.sync_batch_norm") {

namespace {

constexpr std::int64_t samples = 3, channels = 32, pixels = 5;

/// [N, C, H, W] as [N, H, W, C].
op_value channels_last(const op_value& x) {
  op_value out{.dims = {samples, pixels, 1, channels}, .elements = x.elements};
  for (std::int64_t n = 0; n < samples; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < pixels; ++p)
        out
          .elements[static_cast<std::size_t>((n * pixels + p) * channels + c)] =
          x.elements[static_cast<std::size_t>((n * channels + c) * pixels + p)];
  return out;
}

bool is_image(const op_value& x) {
  return x.dims.rank() == 4;
}

/// Runs the op with channels second, in blocks, rounded, and last.
void check_layouts(op_case c) {
  CAPTURE(c.type);
  const auto expected = run_op(cpu_kernels(), c);
  for (const std::int64_t block : {8, 16})
    CHECK(difference(run_op(with_blocked_inputs(cpu_kernels(), {block}), c),
                     expected, 1e-6)
          == "");
  CHECK(
    difference(
      run_op(with_rounded_inputs(cpu_kernels(), {16, precision::bfloat16}), c),
      run_op(with_rounded_inputs(cpu_kernels(), {16}), c), 4e-3)
    == "");
  for (auto& [slot, values] : c.inputs)
    if (is_image(values[0]))
      values[0] = channels_last(values[0]);
  c.attributes.set("data_layout", std::string{"NHWC"});
  for (const auto& [slot, values] : run_op(cpu_kernels(), c)) {
    CAPTURE(slot);
    const auto& wanted = expected.at(slot)[0];
    const auto same = is_image(wanted) ? channels_last(wanted) : wanted;
    CHECK(to_string(values[0].dims) == to_string(same.dims));
    REQUIRE(values[0].elements.size() == same.elements.size());
    for (std::size_t i = 0; i < same.elements.size(); ++i)
      CHECK(values[0].elements[i]
            == doctest::Approx(same.elements[i]).epsilon(1e-5));
  }
}

const slot_names saved{{"SavedMean", "mean of all"},
                       {"SavedVariance", "variance of all"}};
const slot_names normalized{
  {"X", "x"}, {"Scale", "scale"}, {"Bias", "bias"}, {"Moments", "moments"}};
const slot_names parameter_gradients{
  {"Sums", "sums"}, {"Scale@GRAD", "dscale"}, {"Bias@GRAD", "dbias"}};

void run_single_ops(op_chain& ops, bool adds) {
  ops.run("sync_batch_norm_moments", {{"X", "x"}}, {{"Moments", "moments"}});
  ops.run("sync_batch_norm_normalize", normalized,
          saved + std::pair{"Y", "normal"});
  if (adds)
    ops.run("elementwise_add", {{"X", "normal"}, {"Y", "z"}}, {{"Out", "sum"}});
  ops.run("relu", {{"X", adds ? "sum" : "normal"}}, {{"Out", "y"}});
  ops.run("relu_grad", {{"Out", "y"}, {"Out@GRAD", "dout"}},
          {{"X@GRAD", "dz"}}); // the gradient of both summands
  const auto read =
    saved + slot_names{{"X", "x"}, {"Y@GRAD", "dz"}, {"Moments", "moments"}};
  ops.run("sync_batch_norm_grad_sums", read, parameter_gradients);
  ops.run("sync_batch_norm_grad_apply",
          read + slot_names{{"Scale", "scale"}, {"Sums", "sums"}},
          {{"X@GRAD", "dx"}});
}

void run_with_relu(op_chain& ops, bool adds) {
  auto relu = ops.attributes();
  relu.set("act_type", std::string{"relu"});
  ops.run("sync_batch_norm_moments", {{"X", "x"}}, {{"Moments", "moments"}});
  ops.run("sync_batch_norm_normalize",
          adds ? normalized + std::pair{"Z", "z"} : normalized,
          saved + std::pair{"Y", "y"}, relu);
  const auto read = saved + slot_names{{"X", "x"}, {"Moments", "moments"}};
  const auto apply =
    read + slot_names{{"Scale", "scale"}, {"Sums", "sums"}, {"Bias", "bias"}};
  if (adds) {
    ops.run("sync_batch_norm_grad_sums",
            read + slot_names{{"Y@GRAD", "dout"}, {"Y", "y"}},
            parameter_gradients + std::pair{"Z@GRAD", "dz"}, relu);
    return ops.run("sync_batch_norm_grad_apply",
                   apply + std::pair{"Y@GRAD", "dz"}, {{"X@GRAD", "dx"}});
  }
  ops.run(
    "sync_batch_norm_grad_sums",
    read + slot_names{{"Y@GRAD", "dout"}, {"Scale", "scale"}, {"Bias", "bias"}},
    parameter_gradients, relu);
  ops.run("sync_batch_norm_grad_apply", apply + std::pair{"Y@GRAD", "dout"},
          {{"X@GRAD", "dx"}}, relu);
}

/// Y from what was saved has the same bits.
void check_again(op_chain& ops) {
  auto relu = ops.attributes();
  relu.set("act_type", std::string{"relu"});
  ops.run("recompute_batch_norm_act",
          saved + slot_names{{"X", "x"}, {"Scale", "scale"}, {"Bias", "bias"}},
          {{"Y", "again"}}, relu);
  CHECK(ops.elements("again") == ops.elements("y"));
}

void check_same(const chain_case& c) {
  CAPTURE(c.adds);
  CAPTURE(c.dims.numel());
  auto single = with_inputs(c);
  auto together = with_inputs(c);
  run_single_ops(single, c.adds);
  run_with_relu(together, c.adds);
  for (auto name :
       {"y", "mean of all", "variance of all", "dx", "dscale", "dbias"}) {
    CAPTURE(name);
    CHECK(together.elements(name) == single.elements(name));
  }
  if (c.adds)
    CHECK(together.elements("dz") == single.elements("dz"));
  else
    check_again(together);
}

} // namespace

TEST_CASE("with a relu behind them they give the bits of the single ops") {
  attribute_map last;
  last.set("data_layout", std::string{"NHWC"});
  for (const bool adds : {false, true}) {
    check_same({{3, 5, 7, 6}, adds});
    check_same({{4, 6}, adds});
    check_same({{2, 3, 4, 5}, adds, {}, last});
    check_same({{3, 32, 17, 17}, adds, {16, 16, 16}});
    check_same({{3, 32, 5, 5}, adds, {8, 8, 8}});
    check_same({{2, 16, 6, 5}, adds, {16, 0, 16}});
    check_same({{2, 16, 6, 5}, adds, {0, 16, 0}});
    check_same({{1, 5}, adds}); // one element per channel is passed through
    check_same({{1, 16, 1, 1}, adds, {16, 16, 16}});
  }
}

TEST_CASE("one element here is normalised with those of other devices") {
  auto ops = with_inputs({{1, 5}});
  ops.put("moments", {2, 1 + 2 * 5});
  const auto moments = ops.at("moments").as_tensor().values<float>();
  for (float& value : moments)
    value = std::abs(value);
  moments[0] = 1;
  moments[1 + 2 * 5] = 3; // elements of the other device
  auto relu = ops.attributes();
  relu.set("act_type", std::string{"relu"});
  ops.run("sync_batch_norm_normalize", normalized, saved + std::pair{"Y", "y"},
          relu);
  check_again(ops);
}

TEST_CASE("another activation than relu is an error") {
  attribute_map attributes;
  attributes.set("act_type", std::string{"tanh"});
  auto ops = with_inputs({{2, 16, 3, 3}});
  ops.run("sync_batch_norm_moments", {{"X", "x"}}, {{"Moments", "moments"}});
  const auto failure = caught([&] {
    ops.run("sync_batch_norm_normalize", normalized,
            saved + std::pair{"Y", "y"}, attributes);
  });
  CHECK(failure.code() == errc::invalid_argument);
  CHECK(says(failure, "tanh"));
}

TEST_CASE("channels may be second, in blocks or last") {
  const shape image{samples, channels, pixels, 1};
  const auto x = random_values(image, 1);
  const auto dy = random_values(image, 2);
  const auto of_channels = [](std::uint64_t seed) {
    return std::vector<op_value>{random_values({channels}, seed, 0.5, 1)};
  };
  const op_case local{.type = "sync_batch_norm_moments",
                      .inputs = {{"X", {x}}},
                      .outputs = {{"Moments", 1}}};
  check_layouts(local);
  const auto moments = run_op(cpu_kernels(), local).at("Moments");
  check_layouts(
    {.type = "sync_batch_norm_normalize",
     .inputs = {{"X", {x}},
                {"Scale", of_channels(3)},
                {"Bias", of_channels(4)},
                {"Moments", moments}},
     .outputs = {{"Y", 1}, {"SavedMean", 1}, {"SavedVariance", 1}}});
  op_values read{{"X", {x}},
                 {"Y@GRAD", {dy}},
                 {"SavedMean", of_channels(5)},
                 {"SavedVariance", of_channels(6)},
                 {"Moments", moments}};
  check_layouts(
    {.type = "sync_batch_norm_grad_sums",
     .inputs = read,
     .outputs = {{"Sums", 1}, {"Scale@GRAD", 1}, {"Bias@GRAD", 1}}});
  read["Scale"] = of_channels(3);
  read["Sums"] = {random_values({2 * channels}, 7)};
  check_layouts({.type = "sync_batch_norm_grad_apply",
                 .inputs = read,
                 .outputs = {{"X@GRAD", 1}}});
}
} // TEST_SUITE("kernels.cpu.sync_batch_norm")

} // namespace troupe::test
