// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <cstdint>

namespace troupe::cpu {

/// The part [start, start + extent) of a whole tensor along an axis, as runs of
/// bytes. concat, split, stack and the like copy these runs; workers share
/// them.
class part_runs {
public:
  part_runs(const shape& whole, std::size_t axis, std::int64_t start,
            std::int64_t extent, dtype type);

  void to_whole(const kernel_context& ctx, tensor& whole,
                const tensor& part) const;
  void to_part(const kernel_context& ctx, const tensor& whole,
               tensor& part) const;

private:
  std::int64_t outer_ = 1;
  std::size_t whole_step_ = 0; // bytes
  std::size_t part_step_ = 0;
  std::size_t offset_ = 0; // of the first run in the whole, in bytes
};

} // namespace troupe::cpu
