// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/movement/indices.hpp>

#include <troupe/base/error.hpp>

#include <cstring>

namespace troupe::cpu {

namespace {

// Output `slot` as a copy of `x`, which may be the value of the same variable.
tensor copied(kernel_context& ctx, std::string_view slot, const tensor& x) {
  tensor out = ctx.output(slot, x.dims(), x.type());
  if (out.raw() != x.raw() && x.numel() > 0)
    std::memcpy(out.raw(), x.raw(), x.bytes());
  return out;
}

tensor updates_of(const kernel_context& ctx, const named_runs& runs,
                  dtype type) {
  const tensor updates = ctx.input("Updates");
  if (updates.type() != type)
    throw error(errc::dtype_mismatch, "Updates and X differ in dtype");
  if (updates.numel() != runs.dims.numel())
    require_shape("Updates", updates.dims(), runs.dims);
  return updates;
}

// The gradient of the rows that were written: the same rows of dOut.
void updates_gradient(kernel_context& ctx, const named_runs& runs,
                      const tensor& dout) {
  if (!ctx.has_output("Updates@GRAD"))
    return;
  tensor d =
    ctx.output("Updates@GRAD", ctx.input("Updates").dims(), dout.type());
  if (d.numel() != runs.dims.numel())
    require_shape("Updates", d.dims(), runs.dims);
  gather_runs(runs, d, dout);
}

} // namespace

void run_scatter(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const named_runs rows = find_rows(ctx, "Ids", x.dims());
  const tensor updates = updates_of(ctx, rows, x.type());
  tensor out = copied(ctx, "Out", x);
  if (ctx.attributes().get_bool("overwrite", true))
    return scatter_runs(rows, out, updates);
  clear_runs(rows, out);
  add_runs(rows, out, updates);
}

void run_scatter_grad(kernel_context& ctx) {
  const tensor dout = ctx.input("Out@GRAD");
  const named_runs rows = find_rows(ctx, "Ids", dout.dims());
  updates_gradient(ctx, rows, dout);
  if (!ctx.has_output("X@GRAD"))
    return;
  tensor dx = copied(ctx, "X@GRAD", dout);
  clear_runs(rows, dx);
}

void run_scatter_nd_add(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const named_runs runs = find_runs(ctx, "Index", x.dims());
  const tensor updates = updates_of(ctx, runs, x.type());
  tensor out = copied(ctx, "Out", x);
  add_runs(runs, out, updates);
}

void run_scatter_nd_add_grad(kernel_context& ctx) {
  const tensor dout = ctx.input("Out@GRAD");
  updates_gradient(ctx, find_runs(ctx, "Index", dout.dims()), dout);
  if (ctx.has_output("X@GRAD"))
    ctx.output_variable("X@GRAD").set(dout.share());
}

} // namespace troupe::cpu
