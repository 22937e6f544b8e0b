// SPDX-License-Identifier: Apache-2.0
// A file of MNIST's format.

#include "fuzz/fuzz_target.hpp"

#include <troupe/kernels/io/idx.hpp>

namespace troupe::fuzz {

memory_allowance allowance() {
  return {.per_byte = 8};
}

void run_target(std::string_view bytes) {
  const memory_file file(bytes);
  arena memory(make_host_memory_source());
  read_idx(file.path(), memory);
}

} // namespace troupe::fuzz
