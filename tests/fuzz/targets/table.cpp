// SPDX-License-Identifier: Apache-2.0
// Text: comma-separated numbers with labels of both kinds, and plain text.

#include "fuzz/fuzz_target.hpp"

#include <troupe/kernels/io/csv.hpp>
#include <troupe/kernels/io/text.hpp>

namespace troupe::fuzz {

memory_allowance allowance() {
  return {.per_byte = 128};
}

void run_target(std::string_view bytes) {
  const memory_file file(bytes);
  arena memory(make_host_memory_source());
  accept_errors([&] { read_csv(file.path(), {}, memory); });
  accept_errors([&] {
    read_csv(file.path(), {.label_column = "y", .label_type = dtype::float32},
             memory);
  });
  read_text(file.path(), memory);
}

} // namespace troupe::fuzz
