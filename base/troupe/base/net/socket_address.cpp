// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/net/socket_address.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>

namespace troupe {

namespace {

template <class Sockaddr>
socket_address made_of(const Sockaddr& address) {
  socket_address made;
  std::memcpy(&made.bytes, &address, sizeof address);
  made.size = sizeof address;
  return made;
}

template <class Sockaddr>
Sockaddr as(const socket_address& address) {
  Sockaddr copy;
  std::memcpy(&copy, &address.bytes, sizeof copy);
  return copy;
}

bool is_loopback(const in_addr& address) {
  return ntohl(address.s_addr) >> 24 == 127;
}

bool is_loopback(const in6_addr& address) {
  in_addr mapped;
  std::memcpy(&mapped, &address.s6_addr[12], sizeof mapped);
  return IN6_IS_ADDR_LOOPBACK(&address)
         || (IN6_IS_ADDR_V4MAPPED(&address) && is_loopback(mapped));
}

bool is_loopback(const socket_address& address) {
  return address.bytes.ss_family == AF_INET
           ? is_loopback(as<sockaddr_in>(address).sin_addr)
           : is_loopback(as<sockaddr_in6>(address).sin6_addr);
}

/// True for the address that stands for all of a host's addresses.
bool is_any(const socket_address& address) {
  if (address.bytes.ss_family == AF_INET)
    return as<sockaddr_in>(address).sin_addr.s_addr == htonl(INADDR_ANY);
  const auto v6 = as<sockaddr_in6>(address).sin6_addr;
  return IN6_IS_ADDR_UNSPECIFIED(&v6);
}

/// C functions would ignore everything after an embedded NUL.
bool is_whole(const std::string& host) {
  return host.find('\0') == std::string::npos;
}

// -- interfaces ---------------------------------------------------------------

bool is_confined_to_link(const socket_address& address) {
  if (address.bytes.ss_family != AF_INET6)
    return false;
  const auto v6 = as<sockaddr_in6>(address).sin6_addr;
  return IN6_IS_ADDR_LINKLOCAL(&v6);
}

/// Of any family, with the port.
socket_address address_in(const sockaddr& found, std::uint16_t port) {
  sockaddr_in v4;
  sockaddr_in6 v6;
  if (found.sa_family == AF_INET) {
    std::memcpy(&v4, &found, sizeof v4);
    v4.sin_port = htons(port);
    return made_of(v4);
  }
  std::memcpy(&v6, &found, sizeof v6);
  v6.sin6_port = htons(port);
  return made_of(v6);
}

/// The addresses of each interface that is up, IPv4 first. Those without any
/// are there, too.
using interface_table =
  std::map<std::string, std::vector<socket_address>, std::less<>>;

interface_table all_interfaces(std::uint16_t port) {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0)
    throw error(errc::io_failure, "the network interfaces cannot be listed: "
                                    + std::system_category().message(errno));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> whole(
    found, &::freeifaddrs);
  interface_table all;
  for (const int family : {AF_INET, AF_INET6})
    for (const auto* at = found; at; at = at->ifa_next) {
      auto& own = all[at->ifa_name];
      if (at->ifa_addr && at->ifa_addr->sa_family == family
          && (at->ifa_flags & IFF_UP) != 0)
        own.push_back(address_in(*at->ifa_addr, port));
    }
  return all;
}

bool is_alias_of(std::string_view alias, std::string_view name) {
  return alias.size() > name.size() && alias.starts_with(name)
         && alias[name.size()] == ':';
}

std::string text_of(const interface_table& all) {
  std::string text;
  for (auto& [name, addresses] : all) {
    text += (text.empty() ? "" : ", ") + one_line(name);
    for (auto& address : addresses)
      text += (&address == &addresses.front() ? " (" : " ") + address.figures()
              + (&address == &addresses.back() ? ")" : "");
  }
  return text;
}

} // namespace

std::uint16_t socket_address::port() const noexcept {
  if (bytes.ss_family == AF_INET)
    return ntohs(as<sockaddr_in>(*this).sin_port);
  if (bytes.ss_family == AF_INET6)
    return ntohs(as<sockaddr_in6>(*this).sin6_port);
  return 0;
}

std::string socket_address::figures() const {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(get(), size, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST)
      != 0)
    return "unknown";
  return text.data();
}

socket_address parse_loopback(const std::string& host, std::uint16_t port) {
  const auto* figures = host == "localhost" ? "127.0.0.1" : host.c_str();
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (is_whole(host) && ::inet_pton(AF_INET, figures, &v4.sin_addr) == 1
      && is_loopback(v4.sin_addr))
    return made_of(v4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (is_whole(host) && ::inet_pton(AF_INET6, figures, &v6.sin6_addr) == 1
      && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr))
    return made_of(v6);
  throw error(errc::invalid_argument, "processes of one host talk over "
                                      "loopback only (127.0.0.0/8 or ::1), not "
                                      "over "
                                        + host);
}

std::vector<socket_address> addresses_of_host(const std::string& host,
                                              std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const auto failure =
    ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (failure != 0)
    throw error(errc::peer_failure, "no address of host " + quoted_name(host)
                                      + ": " + ::gai_strerror(failure));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> whole(
    found, &::freeaddrinfo);
  std::vector<socket_address> all;
  for (auto* at = found; at; at = at->ai_next) {
    auto& made = all.emplace_back();
    std::memcpy(&made.bytes, at->ai_addr, at->ai_addrlen);
    made.size = at->ai_addrlen;
  }
  return all;
}

std::vector<socket_address> find_host(const std::string& host,
                                      std::uint16_t port) {
  if (host.empty() || !is_whole(host))
    throw error(errc::invalid_argument,
                quoted_name(host) + " is not the name of a host");
  auto found = addresses_of_host(host, port);
  const auto first = found.front().figures();
  std::erase_if(found, [](const socket_address& address) {
    return is_loopback(address) || is_any(address);
  });
  if (found.empty())
    throw error(errc::invalid_argument,
                "host " + quoted_name(host) + " leads to " + first
                  + ", which other hosts cannot reach: give an address of its "
                    "network");
  return found;
}

std::vector<socket_address> addresses_of_interface(const std::string& name,
                                                   std::uint16_t port) {
  const auto all = all_interfaces(port);
  bool is_there = false;
  std::vector<socket_address> own;
  for (auto& [label, addresses] : all)
    if (label == name || is_alias_of(label, name)) {
      is_there = true;
      own.insert(own.end(), addresses.begin(), addresses.end());
    }
  std::erase_if(own, [](const socket_address& address) {
    return is_loopback(address) || is_confined_to_link(address);
  });
  if (own.empty())
    throw error(errc::invalid_argument,
                (is_there ? "network interface " + quoted_name(name)
                              + " has no address at which other hosts can "
                                "reach it; this host has "
                          : "there is no network interface " + quoted_name(name)
                              + "; this host has ")
                  + text_of(all));
  std::ranges::stable_sort(own, {}, [](const socket_address& address) {
    return address.bytes.ss_family != AF_INET;
  });
  return own;
}

std::vector<socket_address> common_of(const std::vector<socket_address>& wanted,
                                      const std::vector<socket_address>& own) {
  std::vector<socket_address> both;
  for (auto& address : wanted)
    if (std::ranges::any_of(own, [&](const socket_address& of) {
          return of.figures() == address.figures();
        }))
      both.push_back(address);
  return both;
}

socket_address own_address(int fd) {
  socket_address found;
  found.size = sizeof found.bytes;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&found.bytes), &found.size);
  return found;
}

socket_address address_of_peer(int fd) {
  socket_address found;
  found.size = sizeof found.bytes;
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&found.bytes), &found.size);
  return found;
}

void set_blocking(int fd, bool yes) {
  const auto flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, yes ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

} // namespace troupe
