// SPDX-License-Identifier: Apache-2.0
// What `troupe launch` tells `troupe launch-rank` on another host: any bytes,
// or CBOR to which the target gives its length and the version.

#include "fuzz/fuzz_target.hpp"

#include <troupe/apps/launch/rank_specification.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/version.hpp>

#include <fcntl.h>

namespace troupe::fuzz {

namespace {

apps::rank_specification read(std::string_view bytes) {
  const memory_file from(bytes);
  const descriptor file{::open(from.path().c_str(), O_RDONLY | O_CLOEXEC)};
  return apps::read_specification(file.get());
}

/// Seeds need not change with the version.
std::string with_version(std::string cbor) {
  const std::string any = "\x65"
                          "0.0.0",
                    own = TROUPE_VERSION;
  if (const auto at = cbor.find(any); at != cbor.npos)
    cbor.replace(at, any.size(), static_cast<char>(0x60 + own.size()) + own);
  return cbor;
}

std::string with_length(const std::string& cbor) {
  std::string length;
  for (int bits = 0; bits < 32; bits += 8)
    length += static_cast<char>(cbor.size() >> bits);
  return length + cbor;
}

} // namespace

// One byte can be a value of JSON.
memory_allowance allowance() {
  return {.per_byte = 128};
}

void run_target(std::string_view bytes) {
  const bool is_cbor = bytes.starts_with('C');
  const auto given = is_cbor
                       ? with_length(with_version(std::string{bytes.substr(1)}))
                       : std::string{bytes};
  accept_only({errc::bad_file, errc::io_failure}, [&] {
    const auto told = apps::to_bytes(read(given));
    if (apps::to_bytes(read(told)) != told)
      fail("a specification changes on its way");
  });
}

} // namespace troupe::fuzz
