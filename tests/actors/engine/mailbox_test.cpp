// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/mailbox.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace troupe::actors;

TEST_SUITE("actors.engine.mailbox") {

TEST_CASE("a mailbox of an array has the index of its number, whatever its "
          "counters") {
  constexpr std::size_t count = 5000;
  for (std::uint32_t counters = 1; counters <= 64; ++counters) {
    CAPTURE(counters);
    const op_mailboxes ops{count, counters};
    const variable_mailboxes variables{count, counters};
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      wrong += ops.index_of(ops.number_of(i)) != i;
      wrong += ops.index_of(ops.at(ops.number_of(i))) != i;
      wrong += variables.index_of(variables.number_of(i)) != i;
      wrong += variables.index_of(variables.at(variables.number_of(i))) != i;
    }
    CHECK(wrong == 0);
  }
}

} // TEST_SUITE("actors.engine.mailbox")
