// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/precision.hpp>

#include <oneapi/dnnl/dnnl.h>

namespace troupe {

std::string_view to_string(precision p) noexcept {
  return p == precision::float32 ? "fp32" : "bf16";
}

bool has_precision(precision p) noexcept {
  // Instruction sets are bits: a larger set has those of the smaller ones.
  constexpr unsigned needed = dnnl_cpu_isa_avx512_core_bf16;
  const unsigned here = dnnl_get_effective_cpu_isa();
  return p == precision::float32 || (here & needed) == needed;
}

} // namespace troupe
