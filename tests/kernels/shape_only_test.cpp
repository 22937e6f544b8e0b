// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/shape_only.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace troupe {

using test::caught;
using test::says;

TEST_SUITE("kernels.shape_only") {

namespace {

/// A kernel context with one input X.
struct one_input {
  explicit one_input(tensor value) {
    if (value.dims().rank() > 0)
      x.set(std::move(value));
  }
  std::unique_ptr<device> on = make_cpu_device(0);
  attribute_map attributes;
  variable x;
  argument_list inputs{{"X", "x", &x}};
  step_info step;
  kernel_context ctx{*on, nullptr, attributes, inputs, {}, step};
};

tensor matrix() {
  arena memory{make_host_memory_source()};
  auto value = tensor::make(memory, {2, 3}, dtype::float64);
  value.set_levels(std::make_shared<const lod>(lod{{0, 1, 2}}));
  return value;
}

} // namespace

TEST_CASE("a shape has dims, dtype and levels of the value, and no memory") {
  const auto value = matrix();
  const auto only = shape_only(value);
  CHECK(only.dims() == shape{2, 3});
  CHECK(only.type() == dtype::float64);
  CHECK(only.levels() == value.levels());
  CHECK(only.bytes() == 0);
  CHECK_FALSE(only);
  CHECK(shape_only(only).dims() == shape{2, 3});
}

TEST_CASE("an input's shape is there with and without elements") {
  CHECK(input_shape(one_input(matrix()).ctx, "X") == shape{2, 3});
  CHECK(input_shape(one_input(shape_only(matrix())).ctx, "X") == shape{2, 3});
}

TEST_CASE("reading elements that are not kept is an error") {
  one_input in{shape_only(matrix())};
  const auto failure = caught([&] { in.ctx.input("X"); });
  CHECK(failure.code() == errc::kernel_failure);
  CHECK(says(failure, "[2, 3]"));
}

TEST_CASE("an input without value has no shape") {
  one_input in{tensor{}};
  const auto failure = caught([&] { input_shape(in.ctx, "X"); });
  CHECK(failure.code() == errc::kernel_failure);
  CHECK(says(failure, "holds no value"));
}

} // TEST_SUITE("kernels.shape_only")

} // namespace troupe
