// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/precision.hpp>

#include <oneapi/dnnl/dnnl.h>

namespace troupe {

std::string_view to_string(precision p) noexcept {
  return p == precision::float32 ? "fp32" : "bf16";
}

bool has_precision(precision p) noexcept {
  // Each instruction set is a set of bits and includes those of smaller sets.
  constexpr unsigned needed = dnnl_cpu_isa_avx512_core_bf16;
  const unsigned here = dnnl_get_effective_cpu_isa();
  return p == precision::float32 || (here & needed) == needed;
}

} // namespace troupe
