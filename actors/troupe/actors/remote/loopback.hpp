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

/// Reads an address that only this machine reaches: 127.0.0.0/8 or ::1 in
/// figures, or "localhost", which means 127.0.0.1. No name is looked up: who
/// answers for it could be anybody. Throws error(invalid_argument) for all
/// else.
loopback_address parse_loopback(const std::string& host, std::uint16_t port);

} // namespace troupe::actors
