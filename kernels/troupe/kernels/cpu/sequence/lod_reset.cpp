// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <utility>
#include <vector>

namespace troupe::cpu {

namespace {

// The offsets of the new level: the values of Y, or attribute target_lod.
std::vector<std::uint64_t> wanted_level(const kernel_context& ctx) {
  std::vector<std::uint64_t> level;
  const auto add = [&level](std::int64_t offset) {
    if (offset < 0)
      throw error(errc::invalid_argument,
                  "a negative offset of a sequence: " + std::to_string(offset));
    level.push_back(static_cast<std::uint64_t>(offset));
  };
  if (ctx.has_input("Y")) {
    const tensor y = ctx.input("Y");
    const index_values values(y, "Y");
    for (std::int64_t i = 0; i < y.numel(); ++i)
      add(values[i]);
  } else {
    for (auto offset : ctx.attributes().get_ints("target_lod", {}))
      add(offset);
  }
  return level;
}

lod wanted_levels(const kernel_context& ctx, const tensor& x) {
  if (ctx.has_input("Y") && ctx.input("Y").levels())
    return *ctx.input("Y").levels();
  lod levels;
  if (ctx.attributes().get_bool("append", false) && x.levels())
    levels = *x.levels();
  levels.push_back(wanted_level(ctx));
  return levels;
}

} // namespace

void run_lod_reset(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  auto levels = make_lod(wanted_levels(ctx, x), x.dims()[0]);
  tensor out = x.share();
  out.set_levels(std::move(levels));
  ctx.output_variable("Out").set(std::move(out));
}

void run_lod_reset_grad(kernel_context& ctx) {
  tensor dx = ctx.input("Out@GRAD").share();
  dx.set_levels(ctx.has_input("X") ? ctx.input("X").levels() : nullptr);
  ctx.output_variable("X@GRAD").set(std::move(dx));
}

} // namespace troupe::cpu
