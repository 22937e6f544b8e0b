// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/fill/filled_shape.hpp>

#include <troupe/kernels/cpu/arguments.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

shape known(const shape& dims) {
  if (dims.has_unknown())
    throw error(errc::invalid_argument,
                "attribute shape " + to_string(dims) + " has unknown extents");
  return dims;
}

} // namespace

shape filled_shape(const kernel_context& ctx) {
  std::vector<std::int64_t> dims;
  const auto read = [&](std::string_view slot, std::size_t index) {
    const auto extents = integers(ctx.input(slot, index), slot);
    dims.insert(dims.end(), extents.begin(), extents.end());
  };
  if (ctx.has_input("ShapeTensor"))
    read("ShapeTensor", 0);
  else if (ctx.has_input("ShapeTensorList"))
    for (std::size_t i = 0; i < ctx.num_inputs("ShapeTensorList"); ++i)
      read("ShapeTensorList", i);
  else
    dims = ctx.attributes().get_ints("shape", {});
  return known(shape(dims));
}

shape filled_shape_like_batch(const kernel_context& ctx, bool count_sequences) {
  const auto& attributes = ctx.attributes();
  const tensor input = ctx.input("Input");
  shape dims(attributes.get_ints("shape", {}));
  const auto to =
    normal_axis(attributes.get_int("output_dim_idx", 0), dims.rank(), "Out");
  const auto from = normal_axis(attributes.get_int("input_dim_idx", 0),
                                input.dims().rank(), "Input");
  dims[to] =
    count_sequences && from == 0 ? input.num_samples() : input.dims()[from];
  return known(dims);
}

} // namespace troupe::cpu
