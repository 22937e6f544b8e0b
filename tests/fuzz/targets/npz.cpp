// SPDX-License-Identifier: Apache-2.0
// A NumPy archive.

#include "fuzz/fuzz_target.hpp"

#include <troupe/kernels/io/npz.hpp>

namespace troupe::fuzz {

// A byte of deflate stands for up to 1032; arrays in Fortran order are copied.
memory_allowance allowance() {
  return {.per_byte = 2 * 1032 + 64};
}

void run_target(std::string_view bytes) {
  const memory_file file(bytes);
  arena memory(make_host_memory_source());
  read_npz(file.path(), memory);
}

} // namespace troupe::fuzz
