// SPDX-License-Identifier: Apache-2.0
// The records of a parameter file one by one: a tensor, then selected rows.

#include "fuzz/fuzz_target.hpp"

#include <troupe/graph/paddle/tensor_record.hpp>

namespace troupe::fuzz {

// Sixteen bytes of a file can be an empty level of detail of 24 bytes.
memory_allowance allowance() {
  return {.per_byte = 64};
}

void run_target(std::string_view bytes) {
  const memory_file contents(bytes);
  arena memory(make_host_memory_source());
  accept_errors([&] {
    input_file file(contents.path());
    graph::read_tensor_record(file, "t", memory);
  });
  input_file file(contents.path());
  graph::read_rows_record(file, "r", memory);
}

} // namespace troupe::fuzz
