// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/plans/movement.hpp>

#include <algorithm>
#include <vector>

namespace troupe::cpu {

namespace {

struct move_axis {
  std::int64_t extent = 1;
  std::int64_t x_step = 0;   // elements between neighbours in X
  std::int64_t out_step = 0; // and in Out
};

// A loop nest over matrices. Columns are contiguous in Out. Rows are contiguous
// in X, unless columns are contiguous there, too.
struct move_plan {
  std::vector<move_axis> outer;
  move_axis row;
  move_axis col;
};

// Out's axes, outermost first. Adjacent axes that stay together are merged.
std::vector<move_axis> merged_axes(const shape& x,
                                   const std::vector<std::size_t>& order) {
  std::vector<move_axis> axes;
  for (const std::size_t axis : order) {
    const move_axis next{x[axis], x.numel(axis + 1, x.rank()), 0};
    if (next.extent == 1)
      continue;
    if (!axes.empty() && axes.back().x_step == next.x_step * next.extent)
      axes.back() = {axes.back().extent * next.extent, next.x_step, 0};
    else
      axes.push_back(next);
  }
  std::int64_t step = 1;
  for (auto a = axes.rbegin(); a != axes.rend(); ++a) {
    a->out_step = step;
    step *= a->extent;
  }
  return axes;
}

move_axis take(std::vector<move_axis>& axes, std::size_t index) {
  const move_axis taken = axes[index];
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(index));
  return taken;
}

move_plan make_plan(const shape& x, const std::vector<std::size_t>& order) {
  move_plan plan{merged_axes(x, order), {}, {1, 1, 1}};
  if (!plan.outer.empty())
    plan.col = take(plan.outer, plan.outer.size() - 1);
  if (plan.outer.empty())
    return plan;
  const auto inner =
    std::find_if(plan.outer.begin(), plan.outer.end(),
                 [](const move_axis& a) { return a.x_step == 1; });
  const std::size_t row =
    inner == plan.outer.end()
      ? plan.outer.size() - 1
      : static_cast<std::size_t>(inner - plan.outer.begin());
  plan.row = take(plan.outer, row);
  return plan;
}

// Tile by tile, so that both sides stay in the first-level cache.
template <class T>
void move_tiles(const move_axis& row, const move_axis& col, T* out,
                const T* x) {
  constexpr std::int64_t tile = 16;
  for (std::int64_t r = 0; r < row.extent; r += tile)
    for (std::int64_t c = 0; c < col.extent; c += tile) {
      const std::int64_t r_end = std::min(r + tile, row.extent);
      const std::int64_t c_end = std::min(c + tile, col.extent);
      for (std::int64_t i = r; i < r_end; ++i)
        for (std::int64_t j = c; j < c_end; ++j)
          out[i * row.out_step + j] = x[i * row.x_step + j * col.x_step];
    }
}

template <class T>
void move_rows(const move_axis& row, const move_axis& col, T* out, const T* x) {
  for (std::int64_t i = 0; i < row.extent; ++i)
    std::copy_n(x + i * row.x_step, col.extent, out + i * row.out_step);
}

template <class T>
void move_nest(const move_plan& plan, std::size_t axis, T* out, const T* x) {
  if (axis == plan.outer.size())
    return plan.col.x_step == 1 ? move_rows(plan.row, plan.col, out, x)
                                : move_tiles(plan.row, plan.col, out, x);
  const move_axis& a = plan.outer[axis];
  for (std::int64_t i = 0; i < a.extent; ++i)
    move_nest(plan, axis + 1, out + i * a.out_step, x + i * a.x_step);
}

// Workers share the outermost axis.
template <class T>
void move_elements(const kernel_context& ctx, const move_plan& plan,
                   tensor& out, const tensor& x) {
  auto* to = reinterpret_cast<T*>(out.raw());
  const auto* from = reinterpret_cast<const T*>(x.raw());
  if (plan.outer.empty())
    return move_nest(plan, 0, to, from);
  const auto& a = plan.outer.front();
  in_rows(ctx, a.extent, x.numel() / a.extent,
          [&](std::int64_t first, std::int64_t count) {
            for (std::int64_t i = first; i < first + count; ++i)
              move_nest(plan, 1, to + i * a.out_step, from + i * a.x_step);
          });
}

void transpose(kernel_context& ctx, const tensor& x, std::string_view slot,
               const std::vector<std::size_t>& order) {
  tensor out = ctx.output(slot, permuted(x.dims(), order), x.type());
  if (x.numel() == 0)
    return;
  const move_plan plan = make_plan(x.dims(), order);
  switch (size_of(x.type())) {
  case 1: return move_elements<std::uint8_t>(ctx, plan, out, x);
  case 2: return move_elements<std::uint16_t>(ctx, plan, out, x);
  case 4: return move_elements<std::uint32_t>(ctx, plan, out, x);
  default: return move_elements<std::uint64_t>(ctx, plan, out, x);
  }
}

} // namespace

void run_transpose(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const auto order = transposed_axes(ctx.attributes(), x.dims().rank());
  write_xshape(ctx, x.dims(), x.type());
  transpose(ctx, x, "Out", order);
}

void run_transpose_grad(kernel_context& ctx) {
  const tensor dout = ctx.input("Out@GRAD");
  transpose(
    ctx, dout, "X@GRAD",
    inverse_axes(transposed_axes(ctx.attributes(), dout.dims().rank())));
}

} // namespace troupe::cpu
