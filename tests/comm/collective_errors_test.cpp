// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <troupe/base/error.hpp>
#include <troupe/comm/collective.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>

using namespace comm_test;
using namespace troupe::comm;

TEST_SUITE("comm.collective_errors") {

namespace {

void check_error(errc code, const char* message,
                 const std::function<void()>& run) {
  try {
    run();
    FAIL("no error, expected: ", message);
  } catch (const error& e) {
    CHECK(e.code() == code);
    CHECK(e.message() == message);
  }
}

tensor floats(const shape& dims) {
  return random_tensor(dims, dtype::float32, 0);
}

void check_bind(const collective_options& options, std::vector<tensor> inputs,
                std::vector<tensor> outputs, errc code, const char* message) {
  auto c = make_local_collective(inputs.size(), options);
  check_error(code, message, [&] { c->bind(inputs, outputs); });
  CHECK(c->parts() == 0);
  c->finish(); // nothing is bound, nothing happens
}

class blocked final : public layout {
public:
  std::size_t bytes() const noexcept override { return 64; }
  bool equals(const layout&) const noexcept override { return true; }
  std::string name() const override { return "nChw8c"; }
  void to_plain(const tensor&, tensor&, stream*) const override {}
};

} // namespace

TEST_CASE("a root out of range and a group without ranks are refused") {
  check_error(errc::invalid_argument, "broadcast: root 2 of 2 ranks", [] {
    make_local_collective(2, {.kind = collective_kind::broadcast, .root = 2});
  });
  check_error(errc::invalid_argument, "all_reduce: a group without ranks",
              [] { make_local_collective(0, {}); });
}

TEST_CASE("a wrong number of tensors is refused") {
  auto c = make_local_collective(3, {});
  std::vector<tensor> two(2), three(3);
  check_error(errc::invalid_argument,
              "all_reduce: 2 inputs and 3 outputs for 3 ranks",
              [&] { c->bind(two, three); });
}

TEST_CASE("a rank with another shape or dtype is named") {
  check_bind({}, {floats({3, 4}), floats({3, 5})},
             {floats({3, 4}), floats({3, 4})}, errc::shape_mismatch,
             "all_reduce: input of rank 1 is float32 [3, 5], expected "
             "float32 [3, 4] to go with the input of rank 0");
  check_bind({}, {tensor{}, floats({4}), floats({4})},
             {floats({4}), floats({4}), random_tensor({4}, dtype::int32, 0)},
             errc::dtype_mismatch,
             "all_reduce: output of rank 2 is int32 [4], expected float32 "
             "[4] to go with the input of rank 1");
  check_bind({.kind = collective_kind::all_gather},
             {floats({3, 4}), floats({3, 4})}, {floats({6, 4}), floats({5, 4})},
             errc::shape_mismatch,
             "all_gather: output of rank 1 is float32 [5, 4], expected "
             "float32 [6, 4] to go with the input of rank 0");
  check_bind({.kind = collective_kind::reduce_scatter},
             {floats({6, 4}), floats({6, 4})}, {floats({3, 4}), floats({6, 4})},
             errc::shape_mismatch,
             "reduce_scatter: output of rank 1 is float32 [6, 4], expected "
             "float32 [3, 4] to go with the input of rank 0");
}

TEST_CASE("an axis that cannot be cut or joined is refused") {
  check_bind({.kind = collective_kind::reduce_scatter},
             {floats({5}), floats({5})}, {floats({3}), floats({2})},
             errc::shape_mismatch,
             "reduce_scatter: input of rank 0 is [5], expected a multiple "
             "of 2 ranks along axis 0");
  check_bind({.kind = collective_kind::all_gather}, {floats({}), floats({})},
             {floats({2}), floats({2})}, errc::shape_mismatch,
             "all_gather: input of rank 0 is a scalar, expected an axis to "
             "cut or join along");
}

TEST_CASE("a dtype that cannot be added is refused") {
  std::vector<tensor> values{tensor::make(host(), {4}, dtype::int64)};
  check_bind({}, values, values, errc::dtype_mismatch,
             "all_reduce: input of rank 0 is int64, expected float32, "
             "float16, bfloat16 or int32");
}

TEST_CASE("an output without memory is refused where it is needed") {
  check_bind({}, {floats({4}), floats({4})}, {floats({4}), tensor{}},
             errc::invalid_argument,
             "all_reduce: output of rank 1 has no memory");
  check_bind({.share_results = true}, {floats({4}), floats({4})},
             {tensor{}, tensor{}}, errc::invalid_argument,
             "all_reduce: output of rank 0 has no memory");
  std::vector<tensor> outputs{tensor{}, floats({4})};
  run(*make_local_collective(2, {.kind = collective_kind::reduce, .root = 1}),
      std::vector<tensor>{floats({4}), floats({4})}, outputs);
  CHECK(!outputs[0]);
}

TEST_CASE("idle ranks are refused where they leave nothing to give") {
  check_bind({.op = reduce_op::max}, {tensor{}, tensor{}},
             {floats({4}), floats({4})}, errc::invalid_argument,
             "all_reduce: no rank has an input, and max of nothing is "
             "undefined");
  check_bind({.kind = collective_kind::broadcast}, {tensor{}, floats({4})},
             {floats({4}), floats({4})}, errc::invalid_argument,
             "broadcast: input of rank 0, the root, has no memory");
  check_bind({}, {tensor{}, tensor{}}, {tensor{}, tensor{}},
             errc::invalid_argument,
             "all_reduce: no rank has an input or an output");
}

TEST_CASE("outputs in the place of others are refused where slices move") {
  auto shared = floats({4});
  auto half = shared.memory();
  check_bind({.kind = collective_kind::reduce_scatter}, {shared, floats({4})},
             {floats({2}), tensor{{2}, dtype::float32, half}},
             errc::invalid_argument,
             "reduce_scatter: output of rank 1 has the memory of the input "
             "of rank 0");
  check_bind({.kind = collective_kind::all_gather}, {floats({2}), floats({2})},
             {shared, shared}, errc::invalid_argument,
             "all_gather: output of rank 1 has the memory of the output of "
             "rank 0");
}

TEST_CASE("a tensor in a layout of a library is refused") {
  tensor odd{
    {4}, dtype::float32, host().allocate(64), std::make_shared<blocked>()};
  check_bind({}, {floats({4}), odd}, {floats({4}), floats({4})},
             errc::invalid_argument,
             "all_reduce: input of rank 1 is in the layout nChw8c, expected "
             "a plain tensor");
}
} // TEST_SUITE("comm.collective_errors")
