// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/cuda/queue_parts.hpp>

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

class lookup_grad_kernel final : public kernel {
public:
  void run(kernel_context& ctx) override {
    const auto table = ctx.input("W").dims();
    const auto ids = ctx.input("Ids");
    const auto dout = float_input(ctx, "Out@GRAD");
    const auto id = ids_of(ids);
    require_shape("Out@GRAD", dout.dims(), looked_up(ids.dims(), table));
    auto dw = float_output(ctx, "W@GRAD", table);
    const auto rows = ids.numel();
    auto& memory = ctx.on().memory();
    auto next = tensor::make(memory, {rows}, dtype::int32);
    auto is_first = tensor::make(memory, {rows}, dtype::int32);
    auto& queue = stream_of(ctx.queue());
    queue_fill(queue, dw.data<float>(), dw.numel(), 0);
    queue.run_for_each<link_ids>(
      rows, {id, next.data<std::int32_t>(), is_first.data<std::int32_t>(),
             queue.state().fault, rows, table[0],
             ctx.attributes().get_int("padding_idx", -1)});
    queue.run_for_each<sum_linked_rows>(
      dout.numel(),
      {id, next.data<std::int32_t>(), is_first.data<std::int32_t>(),
       dout.data<float>(), dw.data<float>(), rows, table[1]});
  }
};

} // namespace

void run_lookup(kernel_context& ctx) {
  const auto w = float_input(ctx, "W");
  const auto ids = ctx.input("Ids");
  const auto id = ids_of(ids);
  auto out = float_output(ctx, "Out", looked_up(ids.dims(), w.dims()));
  auto& queue = stream_of(ctx.queue());
  queue.run_for_each<look_up>(
    out.numel(),
    {w.data<float>(), id, out.data<float>(), queue.state().fault, ids.numel(),
     w.dims()[0], w.dims()[1], ctx.attributes().get_int("padding_idx", -1)});
}

std::unique_ptr<kernel> make_lookup_grad(const attribute_map& attributes) {
  if (attributes.get_bool("is_sparse", false))
    throw error(errc::unsupported_op,
                "lookup_table_v2_grad with is_sparse has no kernel for CUDA "
                "devices",
                {.op_type = "lookup_table_v2_grad"});
  return std::make_unique<lookup_grad_kernel>();
}

} // namespace troupe::cuda
