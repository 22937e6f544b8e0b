// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/stored_values.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstdint>

namespace troupe::cpu {

/// One plane of an image in float32, for loops that read or write a whole plane
/// while it is in the cache. For rounded images it is a buffer; otherwise it is
/// the plane itself. One per thread.
class plane_buffer {
public:
  plane_buffer(const kernel_context& ctx, std::int64_t values, bool rounded)
    : values_(values), memory_(ctx.scratch(rounded ? values : 0)) {}

  const float* read(stored_values plane) {
    if (!plane.rounded())
      return plane.floats();
    copy_stored(memory_.data<float>(), plane, values_);
    return memory_.data<float>();
  }

  /// Where to write the plane; call `wrote` afterwards.
  float* begin(stored_results plane) {
    return plane.rounded() ? memory_.data<float>() : plane.floats();
  }
  void wrote(stored_results plane) {
    if (plane.rounded())
      copy_stored(plane, memory_.data<float>(), values_);
  }

private:
  std::int64_t values_;
  tensor memory_;
};

} // namespace troupe::cpu
