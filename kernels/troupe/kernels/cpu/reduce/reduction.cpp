// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/reduce/reduction.hpp>

#include <troupe/kernels/cpu/arguments.hpp>

#include <array>

namespace troupe::cpu {

namespace {

using axis_flags = std::array<bool, shape::max_rank>;

axis_flags reduced_axes(const shape& x, const std::vector<std::int64_t>& axes,
                        bool all) {
  axis_flags reduced{};
  if (all || axes.empty())
    reduced.fill(true);
  else
    for (const std::int64_t axis : axes)
      reduced[normal_axis(axis, std::max<std::size_t>(x.rank(), 1), "X")] =
        true;
  return reduced;
}

void append_indices(std::vector<std::int64_t>& axes, const tensor& source,
                    std::string_view slot) {
  const index_values values(source, slot);
  for (std::int64_t i = 0; i < source.numel(); ++i)
    axes.push_back(values[i]);
}

std::vector<std::int64_t> axes_of(const kernel_context& ctx) {
  std::vector<std::int64_t> axes;
  if (ctx.has_input("AxisTensor"))
    append_indices(axes, ctx.input("AxisTensor"), "AxisTensor");
  for (std::size_t i = 0; i < ctx.num_inputs("AxisTensorList"); ++i)
    append_indices(axes, ctx.input("AxisTensorList", i), "AxisTensorList");
  return axes.empty() ? ctx.attributes().get_ints("dim", {0}) : axes;
}

} // namespace

reduction make_reduction(const shape& x, const std::vector<std::int64_t>& axes,
                         bool all, bool keep) {
  const axis_flags reduced = reduced_axes(x, axes, all);
  reduction r{x, {}, 1, {}};
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (reduced[i]) {
      r.count *= x[i];
      r.kept[i] = 1;
    }
    if (!reduced[i] || keep)
      extents.push_back(r.kept[i]);
  }
  r.out = shape(extents);
  r.plan = plan_broadcast(r.kept, x, -1);
  return r;
}

reduction reduction_of(const kernel_context& ctx, const shape& x) {
  const auto& attributes = ctx.attributes();
  return make_reduction(x, axes_of(ctx),
                        attributes.get_bool("reduce_all", false),
                        attributes.get_bool("keep_dim", false));
}

} // namespace troupe::cpu
