// SPDX-License-Identifier: Apache-2.0
// The header of a NumPy array.

#include "fuzz/fuzz_target.hpp"

#include <troupe/kernels/io/npy.hpp>

namespace troupe::fuzz {

memory_allowance allowance() {
  return {.per_byte = 64};
}

void run_target(std::string_view bytes) {
  parse_npy_header(bytes, "input");
}

} // namespace troupe::fuzz
