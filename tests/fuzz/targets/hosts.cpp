// SPDX-License-Identifier: Apache-2.0
// What hosts of an elastic job tell each other whose ranks keep the rendezvous.

#include "fuzz/fuzz_target.hpp"

#include <troupe/apps/elastic/host_wire.hpp>

#include <string>

namespace troupe::fuzz {

// One byte can be a value of JSON.
memory_allowance allowance() {
  return {.per_byte = 128};
}

void run_target(std::string_view bytes) {
  const std::string line{bytes};
  accept_only({errc::peer_failure}, [&] {
    const auto told = apps::parse_host_report(line);
    if (apps::parse_host_report(apps::to_line(told)) != told)
      fail("a report changes on its way");
  });
  accept_only({errc::peer_failure}, [&] {
    const auto told = apps::to_line(apps::parse_host_order(line));
    if (apps::to_line(apps::parse_host_order(told)) != told)
      fail("an order changes on its way");
  });
}

} // namespace troupe::fuzz
