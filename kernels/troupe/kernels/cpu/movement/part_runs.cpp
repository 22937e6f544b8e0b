// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/movement/part_runs.hpp>

#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>

#include <cstring>

namespace troupe::cpu {

namespace {

// Copies `outer` runs of `bytes` bytes between memory with different steps.
void copy_runs(const kernel_context& ctx, std::byte* to, std::size_t to_step,
               const std::byte* from, std::size_t from_step, std::size_t bytes,
               std::int64_t outer) {
  if (bytes == 0)
    return;
  const auto elements = static_cast<std::int64_t>(bytes / sizeof(float));
  in_rows(ctx, outer, elements, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < first + count; ++i)
      std::memcpy(to + static_cast<std::size_t>(i) * to_step,
                  from + static_cast<std::size_t>(i) * from_step, bytes);
  });
}

} // namespace

part_runs::part_runs(const shape& whole, std::size_t axis, std::int64_t start,
                     std::int64_t extent, dtype type)
  : outer_(whole.numel(0, axis)) {
  const auto inner =
    static_cast<std::size_t>(whole.numel(axis + 1, whole.rank()))
    * size_of(type);
  whole_step_ = static_cast<std::size_t>(whole[axis]) * inner;
  part_step_ = static_cast<std::size_t>(extent) * inner;
  offset_ = static_cast<std::size_t>(start) * inner;
}

void part_runs::to_whole(const kernel_context& ctx, tensor& whole,
                         const tensor& part) const {
  copy_runs(ctx, whole.raw() + offset_, whole_step_, part.raw(), part_step_,
            part_step_, outer_);
}

void part_runs::to_part(const kernel_context& ctx, const tensor& whole,
                        tensor& part) const {
  copy_runs(ctx, part.raw(), part_step_, whole.raw() + offset_, whole_step_,
            part_step_, outer_);
}

} // namespace troupe::cpu
