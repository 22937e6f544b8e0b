// SPDX-License-Identifier: Apache-2.0
// Random fills: which numbers, on which device, in which step.
#include <support/op_runner.hpp>

#include <troupe/base/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace troupe::test {

TEST_SUITE("kernels.cpu.random_fill") {

namespace {

using ints = std::vector<std::int32_t>;
using doubles = std::vector<double>;

doubles drawn(const std::string& type, attribute_map attributes,
              const step_info& step = {.seed = 7}, op_values inputs = {}) {
  const op_case c{.type = type,
                  .inputs = std::move(inputs),
                  .attributes = std::move(attributes),
                  .step = step};
  return run_op(cpu_kernels(), c).at("Out")[0].elements;
}

bool refused(const std::string& type, attribute_map attributes) {
  try {
    drawn(type, std::move(attributes));
  } catch (const error& e) {
    return e.code() == errc::invalid_argument;
  }
  return false;
}

/// The step of a device that has samples [first, first + count) of ten.
step_info shard(std::int64_t first, std::int64_t count) {
  return {.step = 3,
          .seed = 7,
          .first_sample = first,
          .shard_samples = count,
          .batch_samples = 10};
}

/// Numbers for a batch of `count` samples: Out is [3, samples, 2].
doubles like_batch(const std::string& type, std::int64_t first,
                   std::int64_t count) {
  return drawn(type, {{"shape", ints{3, -1, 2}}, {"output_dim_idx", 1}},
               shard(first, count),
               {{"Input", {random_values({count, 4}, 1)}}});
}

} // namespace

TEST_CASE("randint fills its range evenly") {
  const auto all =
    drawn("randint",
          {{"shape", ints{60'000}}, {"low", -2}, {"high", 4}, {"dtype", 3}});
  for (int value = -2; value < 4; ++value)
    CHECK(std::abs(std::ranges::count(all, value) - 10'000) < 500);
  CHECK(*std::ranges::min_element(all) == -2);
  CHECK(*std::ranges::max_element(all) == 3);
}

TEST_CASE("randint refuses an empty range") {
  CHECK(refused("randint", {{"shape", ints{2}}, {"low", 3}, {"high", 3}}));
  CHECK(refused("randint", {{"shape", ints{2}}, {"low", 4}, {"high", 3}}));
}

TEST_CASE("an op without seed draws other numbers in each step") {
  for (const char* type :
       {"uniform_random", "gaussian_random", "truncated_gaussian_random"}) {
    CAPTURE(type);
    const attribute_map attributes{{"shape", ints{20}}};
    const auto first = drawn(type, attributes, {.step = 0, .seed = 7});
    CHECK(first == drawn(type, attributes, {.step = 0, .seed = 7}));
    CHECK(first != drawn(type, attributes, {.step = 1, .seed = 7}));
    attribute_map seeded = attributes;
    seeded.set("seed", 5);
    CHECK(drawn(type, seeded, {.step = 0, .seed = 7})
          == drawn(type, seeded, {.step = 1, .seed = 8}));
  }
}

TEST_CASE("devices draw for their samples what one device draws for all") {
  for (const char* type :
       {"uniform_random_batch_size_like", "gaussian_random_batch_size_like"}) {
    CAPTURE(type);
    const auto whole = like_batch(type, 0, 10);
    for (const auto& [first, count] : {std::pair{0, 6}, std::pair{6, 4}}) {
      const auto part = like_batch(type, first, count);
      for (int outer = 0; outer < 3; ++outer)
        CHECK(std::equal(part.begin() + outer * count * 2,
                         part.begin() + (outer + 1) * count * 2,
                         whole.begin() + outer * 20 + first * 2));
    }
  }
}

TEST_CASE("extents in a tensor that are the samples' are shared out") {
  const auto of = [](const char* type, std::int64_t first, double count) {
    return drawn(type, {{"low", 0}, {"high", 1000}, {"dtype", 5}},
                 shard(first, static_cast<std::int64_t>(count)),
                 {{"ShapeTensor", {values_of({2}, {count, 3}, dtype::int32)}}});
  };
  for (const char* type : {"randint", "uniform_random"}) {
    CAPTURE(type);
    const auto whole = of(type, 0, 10);
    const auto part = of(type, 6, 4);
    CHECK(std::ranges::equal(part, std::span(whole).subspan(18)));
  }
}

TEST_CASE("samples without elements draw nothing") {
  CHECK(drawn("uniform_random_batch_size_like", {{"shape", ints{-1, 0}}},
              shard(2, 4), {{"Input", {random_values({4, 3}, 1)}}})
          .empty());
}

TEST_CASE("a diagonal that leaves the tensor is refused") {
  const attribute_map fits{
    {"shape", ints{3, 4}}, {"diag_num", 3}, {"diag_step", 4}};
  const auto values = drawn("uniform_random", fits);
  for (const std::size_t at : {0u, 5u, 10u})
    CHECK(values[at] == 1);
  CHECK(refused("uniform_random",
                {{"shape", ints{3, 4}}, {"diag_num", 4}, {"diag_step", 4}}));
  CHECK(refused("uniform_random",
                {{"shape", ints{3, 4}}, {"diag_num", 2}, {"diag_step", -3}}));
  CHECK(refused("uniform_random", {{"shape", ints{0}}, {"diag_num", 1}}));
}
} // TEST_SUITE("kernels.cpu.random_fill")

} // namespace troupe::test
