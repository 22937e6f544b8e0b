// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/cuda/queue_parts.hpp>
#include <troupe/kernels/cuda/row_sparse.hpp>

#include <utility>
#include <vector>

namespace troupe::cuda {

namespace {

row_numbers ids_of(const tensor& ids) {
  if (ids.type() == dtype::int64)
    return {ids.data<std::int64_t>(), nullptr};
  if (ids.type() == dtype::int32)
    return {nullptr, ids.data<std::int32_t>()};
  throw_dtype("Ids", ids.type(), "int64 or int32");
}

// W [height, width] and Ids of any shape: Out[..., :] = W[id, :], or zeros for
// padding_idx.
shape looked_up(const shape& ids, const shape& table) {
  require_rank("W", table, 2);
  std::vector<std::int64_t> dims(ids.begin(), ids.end());
  dims.push_back(table[1]);
  return shape(dims);
}

std::int64_t padding_of(const kernel_context& ctx) {
  return ctx.attributes().get_int("padding_idx", -1);
}

/// An entry per id. As on the CPU, the row of padding_idx has a gradient if
/// gradients are row-sparse. Values are copied, not shared: the memory of
/// `dout` may be given up on another stream.
selected_rows entries_per_id(kernel_context& ctx, const tensor& ids,
                             const tensor& dout, const shape& table) {
  const auto count = ids.numel();
  auto made = make_rows(ctx.on().memory(), count, table[0], table);
  auto& queue = stream_of(ctx.queue());
  queue.run_for_each<number_rows>(
    count, {ids_of(ids), made.numbers.data<std::int64_t>(), queue.state().fault,
            count, table[0], padding_of(ctx)});
  queue_copy(queue, dout, made.values);
  return made;
}

} // namespace

void run_lookup(kernel_context& ctx) {
  const auto w = float_input(ctx, "W");
  const auto ids = ctx.input("Ids");
  const auto id = ids_of(ids);
  auto out = float_output(ctx, "Out", looked_up(ids.dims(), w.dims()));
  auto& queue = stream_of(ctx.queue());
  queue.run_for_each<look_up>(
    out.numel(), {w.data<float>(), id, out.data<float>(), queue.state().fault,
                  ids.numel(), w.dims()[0], w.dims()[1], padding_of(ctx)});
}

void run_lookup_grad(kernel_context& ctx) {
  const auto table = ctx.input("W").dims();
  const auto ids = ctx.input("Ids");
  const auto dout = float_input(ctx, "Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), looked_up(ids.dims(), table));
  auto entries = entries_per_id(ctx, ids, dout, table);
  if (ctx.attributes().get_bool("is_sparse", false))
    return ctx.output_variable("W@GRAD").set(std::move(entries));
  auto dw = float_output(ctx, "W@GRAD", table);
  auto& queue = stream_of(ctx.queue());
  queue_fill(queue, dw.data<float>(), dw.numel(), 0);
  const linked_rows links{ctx, "Out@GRAD", entries, table, padding_of(ctx)};
  queue.run_for_each<sum_rows>(links.present().count,
                               {links.entries(), dw.data<float>(), false});
}

} // namespace troupe::cuda
