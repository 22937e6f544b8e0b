// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

// The memory of `value` under other extents; nothing is copied.
void write_reshaped(kernel_context& ctx, std::string_view slot,
                    const tensor& value, const shape& dims) {
  ctx.output_variable(slot).set(value.reshaped(dims).share());
}

// Extent `axis` of a reshape2: 0 copies X's.
std::int64_t known_extent(std::int64_t wanted, std::size_t axis,
                          const shape& x) {
  if (wanted != 0)
    return wanted;
  if (axis >= x.rank())
    throw_shape("X", x,
                "has no extent for the 0 at position " + std::to_string(axis)
                  + " of attribute shape");
  return x[axis];
}

// The extent that -1 stands for.
std::int64_t missing_extent(const std::vector<std::int64_t>& dims,
                            const shape& x) {
  std::int64_t known = 1;
  int unknown = 0;
  for (const std::int64_t extent : dims) {
    unknown += extent == -1 ? 1 : 0;
    known *= extent == -1 ? 1 : extent;
  }
  if (unknown > 1)
    throw error(errc::invalid_argument,
                "attribute shape of reshape2 has two unknown extents");
  return known == 0 ? 0 : x.numel() / known;
}

shape reshape_target(const kernel_context& ctx, const shape& x) {
  auto dims = ctx.attributes().get_ints("shape", {});
  for (std::size_t i = 0; i < dims.size(); ++i)
    dims[i] = known_extent(dims[i], i, x);
  const std::int64_t missing = missing_extent(dims, x);
  for (auto& extent : dims)
    extent = extent == -1 ? missing : extent;
  shape out(dims);
  if (out.numel() != x.numel())
    throw_shape("X", x, "cannot be reshaped to " + to_string(out));
  return out;
}

} // namespace

void run_reshape(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const shape dims = reshape_target(ctx, x.dims());
  write_xshape(ctx, x.dims(), x.type());
  write_reshaped(ctx, "Out", x, dims);
}

void run_reshape_grad(kernel_context& ctx) {
  const shape saved = ctx.input("XShape").dims();
  const tensor dout = ctx.input("Out@GRAD");
  if (saved.rank() == 0)
    throw_shape("XShape", saved, "expected [0, extents of X...]");
  const shape dims(saved.dims().subspan(1));
  if (dims.numel() != dout.numel())
    throw_shape("Out@GRAD", dout.dims(), "X had " + to_string(dims));
  write_reshaped(ctx, "X@GRAD", dout, dims);
}

void run_flatten(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const shape& dims = x.dims();
  const auto& attributes = ctx.attributes();
  const std::size_t start =
    normal_axis(attributes.get_int("start_axis", 1), dims.rank(), "X");
  const std::size_t stop =
    normal_axis(attributes.get_int("stop_axis", 1), dims.rank(), "X");
  if (start > stop)
    throw error(errc::invalid_argument,
                "start_axis of flatten comes after stop_axis");
  std::vector<std::int64_t> flat(dims.begin(), dims.begin() + start);
  flat.push_back(dims.numel(start, stop + 1));
  flat.insert(flat.end(), dims.begin() + stop + 1, dims.end());
  write_xshape(ctx, dims, x.type());
  write_reshaped(ctx, "Out", x, shape(flat));
}

} // namespace troupe::cpu
