// SPDX-License-Identifier: Apache-2.0
// The header of a NumPy array.

#include "fuzz/fuzz_target.hpp"

#include <troupe/kernels/io/npy.hpp>

namespace troupe::fuzz {

std::size_t bytes_per_byte() {
  return 64;
}

void run_target(std::string_view bytes) {
  parse_npy_header(bytes, "input");
}

} // namespace troupe::fuzz
