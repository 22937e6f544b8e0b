// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/layout/image_layout.hpp>

#include <troupe/kernels/cpu/movement/strided_box.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <vector>

namespace troupe::cpu {

shape channels_second(const shape& dims, bool channels_last) {
  if (!channels_last)
    return dims;
  std::vector<std::int64_t> out(dims.begin(), dims.end());
  out.insert(out.begin() + 1, out.back());
  out.pop_back();
  return shape(out);
}

shape channels_in_place(const shape& dims, bool channels_last) {
  if (!channels_last)
    return dims;
  std::vector<std::int64_t> out(dims.begin(), dims.end());
  out.push_back(out[1]);
  out.erase(out.begin() + 1);
  return shape(out);
}

tensor with_channels_second(kernel_context& ctx, const tensor& x) {
  const shape dims = channels_second(x.dims(), true);
  const std::int64_t pixels = dims.numel(2, dims.rank());
  tensor out = tensor::make(ctx.on().memory(), dims, x.type());
  strided_box box;
  box.add_axis(dims[0], dims[1] * pixels, dims[1] * pixels);
  box.add_axis(dims[1], pixels, 1);
  box.add_axis(pixels, 1, dims[1]);
  box.copy(out.raw(), x.raw(), x.type());
  return out;
}

tensor with_channels_last(kernel_context& ctx, const tensor& x) {
  const shape& from = x.dims();
  const std::int64_t pixels = from.numel(2, from.rank());
  tensor out =
    tensor::make(ctx.on().memory(), channels_in_place(from, true), x.type());
  strided_box box;
  box.add_axis(from[0], from[1] * pixels, from[1] * pixels);
  box.add_axis(pixels, from[1], 1);
  box.add_axis(from[1], 1, pixels);
  box.copy(out.raw(), x.raw(), x.type());
  return out;
}

} // namespace troupe::cpu
