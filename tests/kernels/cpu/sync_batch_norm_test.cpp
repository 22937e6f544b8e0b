// SPDX-License-Identifier: Apache-2.0
// The parts of a synchronised batch norm compute the same however their images
// lie. That they compute a batch norm: tests/actors.
#include "blocked_images.hpp"

#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace troupe::test {

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

} // namespace

TEST_SUITE("kernels.cpu.sync_batch_norm") {
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
