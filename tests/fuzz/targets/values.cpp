// SPDX-License-Identifier: Apache-2.0
// A value, and an error, that another process of a run sends.

#include "fuzz/fuzz_target.hpp"

#include <troupe/actors/remote/value_codec.hpp>
#include <troupe/base/failure_codec.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>

namespace troupe::fuzz {

namespace {

void check_value(std::string_view bytes) {
  arena memory(make_host_memory_source());
  variable decoded, again;
  actors::decode_value(bytes, memory, decoded);
  const auto encoded = actors::encode_value(decoded, memory);
  actors::decode_value(encoded.text(), memory, again);
  if (actors::encode_value(again, memory).text() != encoded.text())
    fail("a value changes on its way");
}

void check_failure(std::string_view bytes) {
  const auto encoded = encode_failure(decode_failure(bytes));
  if (encode_failure(decode_failure(encoded)) != encoded)
    fail("an error changes on its way");
}

} // namespace

// Eight bytes can be an empty text, or an empty level, of 32 bytes.
memory_allowance allowance() {
  return {.per_byte = 64};
}

// Arenas get memory in other ways than `new`. Their limit is a limit of what
// sizes in the input can ask for: to reach it is an error of another kind.
void run_target(std::string_view bytes) {
  set_host_memory_limit((std::size_t{8} << 20) + 8 * bytes.size());
  accept_only({errc::peer_failure}, [&] { check_value(bytes); });
  check_failure(bytes);
}

} // namespace troupe::fuzz
