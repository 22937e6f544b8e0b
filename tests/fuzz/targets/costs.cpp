// SPDX-License-Identifier: Apache-2.0
// Costs of ops, as `troupe trace costs --json` prints them.

#include "fuzz/fuzz_target.hpp"

#include <troupe/trace/analysis/cost_table.hpp>

namespace troupe::fuzz {

// A value of JSON is some ten times as large as its text.
memory_allowance allowance() {
  return {.per_byte = 128};
}

void run_target(std::string_view bytes) {
  const memory_file file(bytes);
  accept_errors([&] {
    const auto table = trace::cost_table::read(file.path());
    for (auto& row : table.rows())
      if (const auto line = trace::to_json(row);
          line.find('\n') != std::string::npos)
        fail("a row takes several lines: " + line);
  });
}

} // namespace troupe::fuzz
