// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/cuda/queue_parts.hpp>
#include <troupe/kernels/plans/movement.hpp>
#include <troupe/kernels/plans/range_count.hpp>

#include <algorithm>
#include <string>

namespace troupe::cuda {

namespace {

/// Calls `use(T{})` with an integer of the size of an element.
template <class Use>
void with_word(dtype type, Use use) {
  switch (size_of(type)) {
  case 1: return use(std::uint8_t{});
  case 4: return use(std::uint32_t{});
  case 8: return use(std::uint64_t{});
  default:
    throw error(errc::unsupported_op,
                "no kernel for CUDA devices moves elements of "
                  + std::string(to_string(type)));
  }
}

/// Moves elements: `pairs` says from where in `x` to where in `out`, both
/// counted from these elements on.
void queue_move(kernel_context& ctx, const tensor& x, std::int64_t x_first,
                tensor& out, std::int64_t out_first, const pairing& pairs,
                std::int64_t count) {
  with_word(x.type(), [&]<class T>(T) {
    stream_of(ctx.queue())
      .run_for_each<move_elements<T>>(
        count, {reinterpret_cast<const T*>(x.raw()) + x_first,
                reinterpret_cast<T*>(out.raw()) + out_first, count, pairs});
  });
}

// -- transpose2 ---------------------------------------------------------------

void transpose_to(kernel_context& ctx, const tensor& x, std::string_view slot,
                  const std::vector<std::size_t>& order) {
  auto out = ctx.output(slot, permuted(x.dims(), order), x.type());
  pairing pairs{};
  for (auto axis : order) {
    const auto at = static_cast<std::size_t>(pairs.axes);
    pairs.extent[at] = x.dims()[axis];
    pairs.x_step[at] = x.dims().numel(axis + 1, x.dims().rank());
    pairs.y_step[at] = out.dims().numel(at + 1, out.dims().rank());
    ++pairs.axes;
  }
  queue_move(ctx, x, 0, out, 0, pairs, x.numel());
}

// -- concat, split ------------------------------------------------------------

/// The part [start, start + extent) of a whole tensor along an axis.
struct part_of {
  std::int64_t count;
  std::int64_t offset; ///< of the first element in the whole
  pairing from_whole;
  pairing to_whole;

  part_of(const shape& whole, std::size_t axis, std::int64_t start,
          std::int64_t extent) {
    const auto outer = whole.numel(0, axis);
    const auto inner = whole.numel(axis + 1, whole.rank());
    count = outer * extent * inner;
    offset = start * inner;
    from_whole = {2,
                  {outer, extent * inner},
                  {whole[axis] * inner, 1},
                  {extent * inner, 1}};
    to_whole = {2,
                {outer, extent * inner},
                {extent * inner, 1},
                {whole[axis] * inner, 1}};
  }
};

void queue_part(kernel_context& ctx, const tensor& whole, const part_of& part,
                tensor& out) {
  queue_move(ctx, whole, part.offset, out, 0, part.from_whole, part.count);
}

// -- range --------------------------------------------------------------------

template <class T>
T bound_of(kernel_context& ctx, const char* slot) {
  const auto value = ctx.input(slot);
  require_type(slot, value.type(), dtype_of<T>);
  if (value.numel() != 1)
    throw_shape(slot, value.dims(), "expected one element");
  T number{};
  stream_of(ctx.queue()).read(&number, value.raw(), sizeof number);
  return number;
}

template <class T>
void write_range(kernel_context& ctx) {
  const auto start = bound_of<T>(ctx, "Start");
  const auto end = bound_of<T>(ctx, "End");
  const auto step = bound_of<T>(ctx, "Step");
  tensor out = ctx.output("Out", {range_count(start, end, step)}, dtype_of<T>);
  stream_of(ctx.queue())
    .run_for_each<count_up<T>>(out.numel(),
                               {out.data<T>(), out.numel(), start, step});
}

void run_triangle(kernel_context& ctx, const char* from, const char* to) {
  const auto x = ctx.input(from);
  const auto& dims = x.dims();
  if (dims.rank() < 2)
    throw_shape(from, dims, "expected matrices");
  const auto& attributes = ctx.attributes();
  const auto rows = dims[dims.rank() - 2], columns = dims[dims.rank() - 1];
  const auto diagonal =
    std::clamp(attributes.get_int("diagonal", 0), -rows, columns);
  auto out = ctx.output(to, dims, x.type());
  with_word(x.type(), [&]<class T>(T) {
    stream_of(ctx.queue())
      .run_for_each<keep_triangle<T>>(
        x.numel(), {reinterpret_cast<const T*>(x.raw()),
                    reinterpret_cast<T*>(out.raw()), x.numel(), rows, columns,
                    diagonal, attributes.get_bool("lower", true)});
  });
}

} // namespace

void run_transpose(kernel_context& ctx) {
  const auto x = ctx.input("X");
  const auto order = transposed_axes(ctx.attributes(), x.dims().rank());
  write_xshape(ctx, x.dims(), x.type());
  transpose_to(ctx, x, "Out", order);
}

void run_transpose_grad(kernel_context& ctx) {
  const auto dout = ctx.input("Out@GRAD");
  const auto order = transposed_axes(ctx.attributes(), dout.dims().rank());
  transpose_to(ctx, dout, "X@GRAD", inverse_axes(order));
}

void run_concat(kernel_context& ctx) {
  const auto parts = joined_parts(ctx);
  const auto axis = joined_axis(ctx, parts[0].dims());
  const auto whole = joined_shape(parts, axis);
  auto out = ctx.output("Out", whole, parts[0].type());
  std::int64_t start = 0;
  for (auto& part : parts) {
    const part_of place(whole, axis, start, part.dims()[axis]);
    queue_move(ctx, part, 0, out, place.offset, place.to_whole, place.count);
    start += part.dims()[axis];
  }
}

void run_concat_grad(kernel_context& ctx) {
  const auto parts = joined_parts(ctx);
  const auto axis = joined_axis(ctx, parts[0].dims());
  const auto dout = ctx.input("Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), joined_shape(parts, axis));
  if (ctx.num_outputs("X@GRAD") != parts.size())
    throw error(errc::invalid_argument,
                "concat_grad needs one output X@GRAD for each input X");
  std::int64_t start = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto extent = parts[i].dims()[axis];
    if (ctx.has_output("X@GRAD", i)) {
      auto part = ctx.output("X@GRAD", parts[i].dims(), dout.type(), i);
      queue_part(ctx, dout, {dout.dims(), axis, start, extent}, part);
    }
    start += extent;
  }
}

void run_split(kernel_context& ctx) {
  const auto x = ctx.input("X");
  const auto axis = joined_axis(ctx, x.dims());
  std::int64_t start = 0;
  std::size_t number = 0;
  for (auto extent : split_extents(ctx, x.dims()[axis])) {
    auto dims = x.dims();
    dims[axis] = extent;
    auto part = ctx.output("Out", dims, x.type(), number++);
    queue_part(ctx, x, {x.dims(), axis, start, extent}, part);
    start += extent;
  }
}

void run_tril_triu(kernel_context& ctx) {
  run_triangle(ctx, "X", "Out");
}
void run_tril_triu_grad(kernel_context& ctx) {
  run_triangle(ctx, "Out@GRAD", "X@GRAD");
}

void run_range(kernel_context& ctx) {
  switch (const auto type = ctx.input("Start").type()) {
  case dtype::int32: return write_range<std::int32_t>(ctx);
  case dtype::int64: return write_range<std::int64_t>(ctx);
  case dtype::float32: return write_range<float>(ctx);
  default: throw_dtype("Start", type, "float32, int32 or int64");
  }
}

} // namespace troupe::cuda
