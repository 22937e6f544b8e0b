// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace troupe::actors {

/// A port of this machine's loopback interface.
struct loopback_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }
};

/// Parses an address that only this machine can reach: a numeric address in
/// 127.0.0.0/8, ::1, or "localhost", which means 127.0.0.1. Names are not
/// resolved, because they could resolve to any host. Throws
/// error(invalid_argument) for anything else.
loopback_address parse_loopback(const std::string& host, std::uint16_t port);

} // namespace troupe::actors
