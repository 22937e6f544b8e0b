// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <troupe/kernels/cpu/simd/simd.hpp>

#include <oneapi/dnnl/dnnl.h>

namespace troupe::test {

bool uses_avx512() {
  // Instruction sets are bit masks: a larger set includes the bits of smaller
  // ones.
  constexpr unsigned needed = dnnl_cpu_isa_avx512_core;
  const unsigned here = dnnl_get_effective_cpu_isa();
  return (here & needed) == needed;
}

bool has_own_loops() {
  return cpu::machine_vectors() != cpu::vector_level::build;
}

} // namespace troupe::test
