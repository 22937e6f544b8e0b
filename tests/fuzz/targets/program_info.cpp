// SPDX-License-Identifier: Apache-2.0
// A file program.json.

#include "fuzz/fuzz_target.hpp"

#include <troupe/graph/paddle/program_folder.hpp>

namespace troupe::fuzz {

memory_allowance allowance() {
  return {.per_byte = 512};
}

void run_target(std::string_view bytes) {
  graph::parse_program_info(bytes, "program.json");
}

} // namespace troupe::fuzz
