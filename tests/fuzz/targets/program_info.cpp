// SPDX-License-Identifier: Apache-2.0
// A file program.json.

#include "fuzz/fuzz_target.hpp"

#include <troupe/graph/paddle/program_folder.hpp>

namespace troupe::fuzz {

std::size_t bytes_per_byte() {
  return 512;
}

void run_target(std::string_view bytes) {
  graph::parse_program_info(bytes, "program.json");
}

} // namespace troupe::fuzz
