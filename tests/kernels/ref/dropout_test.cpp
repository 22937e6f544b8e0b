// SPDX-License-Identifier: Apache-2.0
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

namespace troupe::test {

TEST_SUITE("kernels.ref.dropout") {

namespace {

op_case dropout(const shape& x, step_info step, float probability = 0.4f) {
  return {
    .type = "dropout",
    .inputs = {{"X",
                {values_of(x, std::vector<double>(
                                static_cast<std::size_t>(x.numel()), 1.0))}}},
    .attributes = {{"dropout_prob", probability},
                   {"dropout_implementation", "upscale_in_train"}},
    .outputs = {{"Out", 1}, {"Mask", 1}},
    .step = step};
}

std::vector<double> mask_of(const op_case& c) {
  return run_op(reference_kernels(), c).at("Mask")[0].elements;
}

double mean_of(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0)
         / static_cast<double>(v.size());
}

} // namespace

TEST_CASE("the masks of unequal shards are the mask of the whole batch") {
  const auto whole = mask_of(dropout({7, 3, 5}, {.step = 4, .seed = 1}));
  std::vector<double> joined;
  std::int64_t first = 0;
  for (std::int64_t samples : {3, 3, 1}) {
    const auto part = mask_of(
      dropout({samples, 3, 5}, {.step = 4, .seed = 1, .first_sample = first}));
    joined.insert(joined.end(), part.begin(), part.end());
    first += samples;
  }
  CHECK(joined == whole);
}

TEST_CASE("the share of dropped elements is the probability") {
  const auto kept = mean_of(mask_of(dropout({100, 1000}, {.seed = 1})));
  CHECK(kept == doctest::Approx(0.6).epsilon(0.01));
}

TEST_CASE("steps, seeds and ops have masks of their own") {
  const auto mask = mask_of(dropout({100}, {.step = 1, .seed = 1}));
  CHECK(mask != mask_of(dropout({100}, {.step = 2, .seed = 1})));
  CHECK(mask != mask_of(dropout({100}, {.step = 1, .seed = 2})));
  auto other = dropout({100}, {.step = 1, .seed = 1});
  other.attributes.set("seed", 77);
  CHECK(mask != mask_of(other));
  CHECK(mask == mask_of(dropout({100}, {.step = 1, .seed = 1})));
}

TEST_CASE("kept elements are scaled by 1 / (1 - p)") {
  const auto results =
    run_op(reference_kernels(), dropout({50}, {.seed = 1}, 0.75f));
  const auto& mask = results.at("Mask")[0];
  const auto& out = results.at("Out")[0];
  CHECK(mask.type == dtype::uint8);
  for (std::size_t i = 0; i < 50; ++i)
    CHECK(out.elements[i] == 4 * mask.elements[i]);
}

TEST_CASE("the gradient uses the mask that it is given") {
  const op_case c{
    .type = "dropout_grad",
    .inputs = {{"Mask", {values_of({4}, {1, 0, 0, 1}, dtype::uint8)}},
               {"Out@GRAD", {values_of({4}, {1, 2, 3, 4})}}},
    .attributes = {{"dropout_prob", 0.5f},
                   {"dropout_implementation", "upscale_in_train"}},
    .outputs = {{"X@GRAD", 1}}};
  const auto dx = run_op(reference_kernels(), c).at("X@GRAD")[0];
  CHECK(dx.elements == std::vector<double>{2, 0, 0, 8});
}

TEST_CASE("in tests nothing is dropped") {
  auto c = dropout({3}, {.seed = 1}, 0.25f);
  c.attributes.set("is_test", true);
  c.outputs = {{"Out", 1}};
  CHECK(run_op(reference_kernels(), c).at("Out")[0].elements
        == std::vector<double>{1, 1, 1});
  c.attributes.set("dropout_implementation", "downgrade_in_infer");
  CHECK(run_op(reference_kernels(), c).at("Out")[0].elements
        == std::vector<double>{0.75, 0.75, 0.75});
}
} // TEST_SUITE("kernels.ref.dropout")

} // namespace troupe::test
