// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/part_runs.hpp>

#include <cstring>

namespace troupe::cpu {

namespace {

// Copies `outer` runs of `bytes` bytes between memory with different steps.
void copy_runs(std::byte* to, std::size_t to_step, const std::byte* from,
               std::size_t from_step, std::size_t bytes, std::int64_t outer) {
  if (bytes == 0)
    return;
  for (std::int64_t i = 0; i < outer; ++i)
    std::memcpy(to + static_cast<std::size_t>(i) * to_step,
                from + static_cast<std::size_t>(i) * from_step, bytes);
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

void part_runs::to_whole(tensor& whole, const tensor& part) const {
  copy_runs(whole.raw() + offset_, whole_step_, part.raw(), part_step_,
            part_step_, outer_);
}

void part_runs::to_part(const tensor& whole, tensor& part) const {
  copy_runs(part.raw(), part_step_, whole.raw() + offset_, whole_step_,
            part_step_, outer_);
}

} // namespace troupe::cpu
