// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// A port of an IP address.
struct socket_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }
  std::uint16_t port() const noexcept; ///< 0 if there is none
  /// The address in figures, without the port.
  std::string figures() const;
};

/// Parses an address that only this machine can reach: a numeric address in
/// 127.0.0.0/8, ::1, or "localhost", which means 127.0.0.1. Names are not
/// resolved, because they could resolve to any host. Throws
/// error(invalid_argument) for anything else.
socket_address parse_loopback(const std::string& host, std::uint16_t port);

/// All addresses of a host, given in figures or by name. Waits for the name
/// server. Throws error(peer_failure) if there is no such name.
std::vector<socket_address> addresses_of_host(const std::string& host,
                                              std::uint16_t port);

/// Finds the addresses of a host that others can reach, given in figures or by
/// name. Waits for the name server. Throws error(invalid_argument) if there are
/// none but those of loopback, to which a host's own name often leads in its
/// /etc/hosts, and of no single host (0.0.0.0); error(peer_failure) if there is
/// no such name.
std::vector<socket_address> find_host(const std::string& host,
                                      std::uint16_t port);

/// The addresses of a network interface of this host at which other hosts can
/// reach it, IPv4 first: none of loopback, and none that IPv6 confines to a
/// link. An alias such as "eth0:1" belongs to "eth0", and can be named alone.
/// Throws error(invalid_argument), which names the interfaces that there are,
/// if there is none of this name, or if it has no such address.
std::vector<socket_address> addresses_of_interface(const std::string& name,
                                                   std::uint16_t port);
/// Those of `wanted` that are among `own`, whatever their ports.
std::vector<socket_address> common_of(const std::vector<socket_address>& wanted,
                                      const std::vector<socket_address>& own);

///@{
/// The ends of a connection.
socket_address own_address(int fd);
socket_address address_of_peer(int fd);
///@}

/// Lets reads and writes of a socket wait, or not.
void set_blocking(int fd, bool yes);

} // namespace troupe
