// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/loopback.hpp>

#include <troupe/base/error.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace troupe::actors {

namespace {

template <class Sockaddr>
loopback_address made_of(const Sockaddr& address) {
  loopback_address made;
  std::memcpy(&made.bytes, &address, sizeof address);
  made.size = sizeof address;
  return made;
}

bool is_loopback(const in_addr& address) {
  return ntohl(address.s_addr) >> 24 == 127;
}

} // namespace

loopback_address parse_loopback(const std::string& host, std::uint16_t port) {
  const auto* figures = host == "localhost" ? "127.0.0.1" : host.c_str();
  // inet_pton would ignore everything after an embedded NUL.
  const auto whole = host.find('\0') == std::string::npos;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (whole && ::inet_pton(AF_INET, figures, &v4.sin_addr) == 1
      && is_loopback(v4.sin_addr))
    return made_of(v4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (whole && ::inet_pton(AF_INET6, figures, &v6.sin6_addr) == 1
      && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr))
    return made_of(v6);
  throw error(
    errc::invalid_argument,
    "processes talk over loopback only (127.0.0.0/8 or ::1), not over " + host);
}

} // namespace troupe::actors
