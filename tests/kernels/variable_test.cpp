// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/variable.hpp>

#include <kernels/tensors.hpp>
#include <support/caught.hpp>

namespace troupe {

using test::caught;
using test::make_floats;
using test::says;

TEST_SUITE("kernels.variable") {

TEST_CASE("a variable holds nothing, a tensor or selected rows") {
  arena memory{make_host_memory_source()};
  variable var;
  CHECK_FALSE(var.has_value());
  var.set(make_floats(memory, std::vector{1.f}));
  CHECK(var.has_value());
  CHECK(var.is_tensor());
  CHECK(var.as_tensor().numel() == 1);
  var.set(selected_rows{.rows = {3, 3}, .height = 10, .values = {}});
  CHECK(var.is_rows());
  CHECK_FALSE(var.is_tensor());
  CHECK(var.as_rows().height == 10);
  var.clear();
  CHECK_FALSE(var.has_value());
  CHECK(memory.live_bytes() == 0);
}

TEST_CASE("a variable holds a tensor array or step scopes") {
  variable var;
  var.set(tensor_array(3));
  CHECK(var.is_array());
  CHECK(var.as_array().size() == 3);
  CHECK(says(caught([&] { var.as_tensor(); }), "holds a tensor array"));
  var.set(step_scopes{});
  CHECK(var.is_scopes());
  CHECK(var.as_scopes().steps.empty());
  CHECK(says(caught([&] { var.as_array(); }), "holds step scopes"));
}

TEST_CASE("asking for what a variable does not hold is an error") {
  variable var;
  const auto& read_only = var;
  auto empty = caught([&] { read_only.as_tensor(); });
  CHECK(empty.code() == errc::kernel_failure);
  CHECK(says(empty, "holds no value instead of a tensor"));
  CHECK(says(caught([&] { var.as_rows(); }), "instead of selected rows"));
  var.set(selected_rows{});
  CHECK(says(caught([&] { var.as_tensor(); }),
             "holds selected rows instead of a tensor"));
  var.set(tensor{});
  CHECK(says(caught([&] { read_only.as_rows(); }),
             "holds a tensor instead of selected rows"));
}

} // TEST_SUITE("kernels.variable")

} // namespace troupe
