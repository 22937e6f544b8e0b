// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/simd/block_loops.hpp>

#include <troupe/kernels/cpu/layout/stored_values.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

namespace troupe::cpu {

block_plane plane_at(const stored_values& values) noexcept {
  return {values.data(), values.rounded()};
}

const block_loops& block_loops_of(std::int64_t block) noexcept {
  const auto level = machine_vectors();
  if (level == vector_level::v4 && block == 16)
    return block_loops_v4_16;
  if (level == vector_level::build)
    return block == 16 ? block_loops_build_16 : block_loops_build_8;
  return block == 16 ? block_loops_v3_16 : block_loops_v3_8;
}

} // namespace troupe::cpu
