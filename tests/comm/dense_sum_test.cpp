// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <troupe/comm/local/dense_sum.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using local::dense_sum;
using troupe::test::caught;

TEST_SUITE("comm.dense_sum") {

namespace {

constexpr auto kind = collective_kind::all_reduce;
constexpr dtype all_types[] = {dtype::float32, dtype::float16, dtype::bfloat16,
                               dtype::int32};

std::vector<tensor> random_tensors(std::size_t ranks, std::int64_t elements,
                                   dtype type) {
  std::vector<tensor> values;
  for (unsigned r = 0; r < ranks; ++r)
    values.push_back(
      random_tensor({elements, 1}, type, r * 7919 + unsigned(elements)));
  return values;
}

double tolerance(dtype type, double value) {
  switch (type) {
  case dtype::int32: return 0;
  case dtype::float16: return std::abs(value) * 0x1p-11 + 0x1p-18;
  case dtype::bfloat16: return std::abs(value) * 0x1p-8 + 0x1p-15;
  default: return 1e-5;
  }
}

// Elements of `sum` that are not as a sum in double precision.
std::size_t wrong(const std::vector<tensor>& inputs, const tensor& sum) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::size_t(sum.numel()); ++i) {
    double want = 0;
    for (auto& input : inputs)
      want += input ? get(input, i) : 0;
    count += !(std::abs(get(sum, i) - want) <= tolerance(sum.type(), want));
  }
  return count;
}

void run(dense_sum& s, const std::vector<tensor>& inputs, tensor& output) {
  s.bind(kind, inputs, output);
  for (std::size_t part = 0; part < s.parts(); ++part)
    s.run_part(part);
}

tensor sum_of(const std::vector<tensor>& inputs, const tensor& like) {
  dense_sum s{1};
  auto output = poisoned_tensor(like.dims(), like.type());
  run(s, inputs, output);
  return output;
}

tensor sum_of(const std::vector<tensor>& inputs) {
  return sum_of(inputs, inputs[0]);
}

// Runs the parts on `threads` threads, in an order that `seed` shuffles.
void run_shuffled(const dense_sum& s, std::size_t threads, unsigned seed) {
  std::vector<std::size_t> order(s.parts());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::shuffle(order.begin(), order.end(), std::minstd_rand{seed});
  std::vector<std::jthread> workers;
  for (std::size_t t = 0; t < threads; ++t)
    workers.emplace_back([&, t] {
      for (auto i = t; i < order.size(); i += threads)
        s.run_part(order[i]);
    });
}

void check_error(std::vector<tensor> inputs, tensor output, errc code,
                 const char* message) {
  dense_sum s{1};
  auto good = random_tensor({4}, dtype::float32, 0);
  s.bind(kind, std::vector{good}, good);
  const auto e = caught([&] { s.bind(kind, inputs, output); });
  CHECK(e.code() == code);
  CHECK(e.message() == message);
  CHECK(s.parts() == 0);
}

} // namespace

TEST_CASE("every dtype equals a double-precision reference") {
  for (auto type : all_types)
    for (std::size_t ranks : {1, 2, 3, 4, 8})
      for (auto elements : {0, 1, 7, 31, 33, 100, 1027}) {
        INFO(to_string(type), " ranks ", ranks, " elements ", elements);
        const auto inputs = random_tensors(ranks, elements, type);
        const auto kept = clones(inputs);
        const auto sum = sum_of(inputs);
        CHECK(wrong(inputs, sum) == 0);
        CHECK(std::equal(kept.begin(), kept.end(), inputs.begin(), same_bits));
        for (std::size_t to = 0; to < ranks; ++to) { // in the place of one
          auto values = clones(inputs);
          dense_sum s{1};
          auto output = values[to];
          run(s, values, output);
          CHECK(same_bits(output, sum));
        }
      }
}

TEST_CASE("sums are bit-equal for any number and order of parts") {
  for (auto type : {dtype::float32, dtype::bfloat16})
    for (std::size_t ranks : {1, 2, 3}) {
      INFO(to_string(type), " ranks ", ranks);
      const auto inputs = random_tensors(ranks, 200'003, type);
      const auto whole = sum_of(inputs);
      for (std::size_t parts : {2, 3, 7, 64}) {
        dense_sum s{parts};
        auto output = poisoned_tensor(whole.dims(), type);
        s.bind(kind, inputs, output);
        CHECK(s.parts() > 1);
        CHECK(s.parts() <= parts);
        run_shuffled(s, 3, unsigned(parts));
        CHECK(same_bits(whole, output));
      }
    }
}

TEST_CASE("float32 elements are added in rank order") {
  std::vector<tensor> inputs;
  for (auto value : {1e8f, 1.0f, -1e8f, 1.0f}) {
    inputs.push_back(tensor::make(host(), {1}, dtype::float32));
    set(inputs.back(), 0, value);
  }
  CHECK(get(sum_of(inputs), 0) == ((1e8f + 1.0f) + -1e8f) + 1.0f);
}

TEST_CASE("halves are added in float32 and rounded once") {
  std::vector<tensor> inputs;
  for (auto value : {2048.0, 1.0, 1.0}) {
    inputs.push_back(tensor::make(host(), {1}, dtype::float16));
    set(inputs.back(), 0, value);
  }
  CHECK(get(sum_of(inputs), 0) == 2050.0);
}

TEST_CASE("a NaN of any rank is in the sum") {
  for (std::size_t bad = 0; bad < 3; ++bad) {
    auto inputs = random_tensors(3, 5, dtype::float32);
    set(inputs[bad], 2, std::nan(""));
    const auto sum = sum_of(inputs);
    CHECK(std::isnan(get(sum, 2)));
    CHECK(!std::isnan(get(sum, 3)));
  }
}

TEST_CASE("sums larger than the caches go past them to other memory") {
  for (std::size_t ranks : {1, 2}) {
    const auto inputs = random_tensors(ranks, 3'000'001, dtype::float32);
    CHECK(wrong(inputs, sum_of(inputs)) == 0);
  }
}

TEST_CASE("a tensor that is alone in its place needs no parts") {
  auto value = random_tensor({1'000'000}, dtype::float32, 1);
  dense_sum s{8};
  s.bind(kind, std::vector{value}, value);
  CHECK(s.parts() == 1);
  auto other = poisoned_tensor(value.dims(), dtype::float32);
  s.bind(kind, std::vector{value}, other);
  CHECK(s.parts() > 1);
}

TEST_CASE("an instance is bound again with other sizes and dtypes") {
  dense_sum s{4};
  for (auto type : all_types)
    for (auto elements : {100'000, 3}) {
      const auto inputs = random_tensors(2, elements, type);
      auto output = poisoned_tensor(inputs[0].dims(), type);
      run(s, inputs, output);
      CHECK(wrong(inputs, output) == 0);
    }
}

TEST_CASE("a rank without a tensor adds nothing") {
  for (auto type : all_types)
    for (std::size_t idle = 0; idle < 3; ++idle) {
      auto inputs = random_tensors(3, 45, type);
      const auto like = inputs[0];
      inputs[idle] = {};
      CHECK(wrong(inputs, sum_of(inputs, like)) == 0);
      inputs[(idle + 1) % 3] = {};
      CHECK(wrong(inputs, sum_of(inputs, like)) == 0);
    }
}

TEST_CASE("tensors that do not fit together are refused") {
  const auto floats = [](const shape& dims) {
    return random_tensor(dims, dtype::float32, 0);
  };
  check_error({tensor{}, floats({3, 4}), floats({3, 5})}, floats({3, 4}),
              errc::shape_mismatch,
              "all_reduce: rank 2 gives float32 [3, 5], rank 1 float32 [3, 4]");
  check_error({floats({4}), random_tensor({4}, dtype::int32, 0)}, floats({4}),
              errc::dtype_mismatch,
              "all_reduce: rank 1 gives int32 [4], rank 0 float32 [4]");
  check_error({tensor::make(host(), {4}, dtype::int64)}, floats({4}),
              errc::dtype_mismatch,
              "all_reduce: rank 0 gives int64, expected float32, float16, "
              "bfloat16 or int32");
  check_error({tensor{}, tensor{}}, floats({4}), errc::invalid_argument,
              "all_reduce: no rank has a value");
  check_error({floats({4})}, tensor{}, errc::invalid_argument,
              "all_reduce: the result has no memory");
}

} // TEST_SUITE("comm.dense_sum")
