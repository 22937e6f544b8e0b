// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <cstring>
#include <vector>

namespace troupe::cpu {

namespace {

// Writes a one into each line of `depth` zeros. As in Paddle, an index outside
// the line is an error, whatever attribute allow_out_of_range says.
void write_lines(const kernel_context& ctx, tensor& out, const tensor& x,
                 std::int64_t depth) {
  const index_values index(x, "X");
  const std::size_t width = size_of(out.type());
  arena& memory = ctx.on().memory();
  tensor unit = tensor::make(memory, {1}, dtype::float32);
  unit.data<float>()[0] = 1.0f;
  unit = cast(unit, out.type(), memory);
  std::memset(out.raw(), 0, out.bytes());
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const std::int64_t at = index[i];
    if (at < 0 || at >= depth)
      throw_index(ctx, "X", at, depth);
    std::memcpy(out.raw() + static_cast<std::size_t>(i * depth + at) * width,
                unit.raw(), width);
  }
}

void run(kernel_context& ctx, bool drops_last) {
  const tensor x = ctx.input("X");
  const std::int64_t depth = integer_of(ctx, "depth_tensor", "depth", -1);
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end());
  if (depth < 0 || (drops_last && (dims.empty() || dims.back() != 1)))
    throw_shape("X", x.dims(), "cannot become one-hot lines");
  if (drops_last)
    dims.pop_back();
  dims.push_back(depth);
  const dtype type = dtype_attribute(ctx.attributes(), "dtype", dtype::float32);
  tensor out = ctx.output("Out", shape(dims), type);
  write_lines(ctx, out, x, depth);
}

} // namespace

void run_one_hot(kernel_context& ctx) {
  run(ctx, false);
}

void run_one_hot_column(kernel_context& ctx) {
  run(ctx, true);
}

void run_shape(kernel_context& ctx) {
  const shape dims = ctx.input("Input").dims();
  tensor out =
    ctx.output("Out", {static_cast<std::int64_t>(dims.rank())}, dtype::int32);
  for (std::size_t i = 0; i < dims.rank(); ++i)
    out.data<std::int32_t>()[i] = static_cast<std::int32_t>(dims[i]);
}

void run_size(kernel_context& ctx) {
  const std::int64_t count = ctx.input("Input").numel();
  ctx.output("Out", {}, dtype::int64).data<std::int64_t>()[0] = count;
}

} // namespace troupe::cpu
