// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace troupe::test {

/// A network that only this thread and the children that it forks can reach,
/// while it exists. It has the addresses 10.77.0.1 to 10.77.0.4: each can stand
/// for a host.
class own_network {
public:
  /// False without the rights to make one, as in most containers. A child of
  /// this process tries it.
  static bool is_possible() {
    const auto child = ::fork();
    if (child == 0)
      ::_exit(set_up() ? 0 : 1);
    int status = 1;
    ::waitpid(child, &status, 0);
    return status == 0;
  }

  enum class with { all_addresses, loopback_alone };

  explicit own_network(with which = with::all_addresses)
    : before_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    REQUIRE(before_ >= 0);
    REQUIRE(set_up(which));
  }
  ~own_network() {
    ::setns(before_, CLONE_NEWNET);
    ::close(before_);
  }
  own_network(const own_network&) = delete;
  own_network& operator=(const own_network&) = delete;

  static constexpr int hosts = 4;
  static std::string address_of(int host) {
    return "10.77.0." + std::to_string(host);
  }

private:
  static bool set_up(with which = with::all_addresses) {
    if (::unshare(CLONE_NEWNET) != 0)
      return false;
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    auto is_done = bring_up(socket, "lo");
    for (int host = 1; which == with::all_addresses && host <= hosts; ++host)
      is_done =
        is_done && add(socket, "lo:" + std::to_string(host), address_of(host));
    ::close(socket);
    return is_done;
  }

  static ifreq request_for(const std::string& name) {
    ifreq request{};
    std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
    return request;
  }

  static bool bring_up(int socket, const std::string& name) {
    auto request = request_for(name);
    if (::ioctl(socket, SIOCGIFFLAGS, &request) != 0)
      return false;
    request.ifr_flags |= IFF_UP;
    return ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
  }

  static bool add(int socket, const std::string& name,
                  const std::string& address) {
    auto request = request_for(name);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    ::inet_pton(AF_INET, address.c_str(), &at.sin_addr);
    std::memcpy(&request.ifr_addr, &at, sizeof at);
    return ::ioctl(socket, SIOCSIFADDR, &request) == 0;
  }

  int before_;
};

} // namespace troupe::test
