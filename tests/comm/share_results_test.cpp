// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <troupe/comm/collective.hpp>
#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace comm_test;
using namespace troupe::comm;

TEST_SUITE("comm.share_results") {

namespace {

constexpr auto sharing = collective_kind::all_reduce;

std::vector<tensor> random_tensors(std::size_t ranks, std::int64_t elements) {
  std::vector<tensor> values;
  for (unsigned r = 0; r < ranks; ++r)
    values.push_back(random_tensor({elements}, dtype::float32, r));
  return values;
}

// What a kernel does that writes variable `var` as its output "Out".
tensor write_as_kernel(device& on, variable& var, float value) {
  attribute_map attributes;
  const argument_list outputs{{"Out", "x", &var}};
  step_info step;
  kernel_context ctx{on, nullptr, attributes, {}, outputs, step};
  auto result = ctx.output("Out", {8}, dtype::float32);
  std::ranges::fill(result.values<float>(), value);
  return result;
}

} // namespace

TEST_CASE("shared results equal copied ones bit by bit") {
  for (std::size_t ranks : {1, 2, 3, 8}) {
    auto inputs = random_tensors(ranks, 70'001);
    auto copied = clones(inputs), shared = clones(inputs);
    run(*make_local_collective(ranks, {}), inputs, copied);
    run(*make_local_collective(ranks, {.share_results = true}), inputs, shared);
    for (std::size_t r = 0; r < ranks; ++r)
      CHECK(same_bits(copied[r], shared[r]));
  }
}

TEST_CASE("all_reduce gives every rank the first output's memory, shared") {
  auto values = random_tensors(3, 10);
  auto* memory = values[0].raw();
  run(*make_local_collective(3, {.kind = sharing, .share_results = true}),
      std::vector<tensor>(values), values);
  for (auto& value : values) {
    CHECK(value.raw() == memory);
    CHECK(value.is_shared());
  }
}

TEST_CASE("outputs that are only shared need no memory") {
  auto inputs = random_tensors(3, 10);
  std::vector<tensor> outputs(3);
  outputs[1] = poisoned_tensor({10}, dtype::float32);
  run(*make_local_collective(3, {.share_results = true}), inputs, outputs);
  for (auto& output : outputs)
    CHECK(output.raw() == outputs[1].raw());
  CHECK(get(outputs[0], 4)
        == doctest::Approx(get(inputs[0], 4) + get(inputs[1], 4)
                           + get(inputs[2], 4)));
}

TEST_CASE("broadcast shares the root's memory and writes nothing") {
  auto inputs = random_tensors(3, 10);
  auto before = clone(inputs[2], host());
  std::vector<tensor> outputs(3);
  run(*make_local_collective(
        3,
        {.kind = collective_kind::broadcast, .root = 2, .share_results = true}),
      inputs, outputs);
  for (auto& output : outputs)
    CHECK(output.raw() == inputs[2].raw());
  CHECK(same_bits(inputs[2], before));
}

TEST_CASE("writing one rank's shared result leaves the others as they are") {
  auto device0 = make_cpu_device(0), device1 = make_cpu_device(1);
  variable x0, x1;
  auto c = make_local_collective(2, {.share_results = true});
  for (int step = 0; step < 3; ++step) {
    // A step's kernels write both gradients, the collective merges them.
    std::vector<tensor> values{
      write_as_kernel(*device0, x0, 1.0f + float(step)),
      write_as_kernel(*device1, x1, 2.0f)};
    CHECK(values[0].raw() != values[1].raw());
    run(*c, std::vector<tensor>(values), values);
    x0.set(values[0]);
    x1.set(values[1]);
    CHECK(x0.as_tensor().raw() == x1.as_tensor().raw());
    CHECK(get(x1.as_tensor(), 7) == 3.0 + step);
  }
  write_as_kernel(*device1, x1, 9.0f);
  CHECK(get(x1.as_tensor(), 0) == 9.0);
  CHECK(get(x0.as_tensor(), 0) == 5.0);
}

TEST_CASE("a group of one rank shares nothing") {
  auto values = random_tensors(1, 10);
  run(*make_local_collective(1, {.share_results = true}),
      std::vector<tensor>(values), values);
  CHECK(!values[0].is_shared());
}

TEST_CASE("kinds whose ranks get different results do not share") {
  auto inputs = random_tensors(2, 10);
  std::vector<tensor> outputs{poisoned_tensor({5}, dtype::float32),
                              poisoned_tensor({5}, dtype::float32)};
  run(*make_local_collective(
        2, {.kind = collective_kind::reduce_scatter, .share_results = true}),
      inputs, outputs);
  CHECK(outputs[0].raw() != outputs[1].raw());
  CHECK(!outputs[0].is_shared());
}
} // TEST_SUITE("comm.share_results")
