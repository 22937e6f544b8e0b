// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/comm/tls/tls_session.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Both ends of TLS connections, for the tests of comm/tls.
namespace tls_test {

using namespace troupe;
using namespace troupe::comm;
using side = tls_session::side;
using wish = tls_session::wish;

struct socket_pair {
  descriptor one, other;
};

inline socket_pair local_pair() {
  int made[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made) == 0);
  return {descriptor{made[0]}, descriptor{made[1]}};
}

/// A connection over TCP, which has larger buffers and can be reset.
inline socket_pair tcp_pair() {
  const descriptor listens{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  REQUIRE(::bind(listens.get(), address, size) == 0);
  REQUIRE(::listen(listens.get(), 1) == 0);
  REQUIRE(::getsockname(listens.get(), address, &size) == 0);
  descriptor one{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(::connect(one.get(), address, size) == 0);
  descriptor other{::accept4(listens.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  REQUIRE(other);
  return {std::move(one), std::move(other)};
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text});
}

inline std::string random_text(std::size_t size, unsigned seed = 1) {
  std::minstd_rand random{seed};
  std::string text(size, '\0');
  std::generate(text.begin(), text.end(),
                [&] { return static_cast<char>(random() >> 8); });
  return text;
}

/// Sends all of a short text. The buffer of the socket must have room.
inline void send_text(const descriptor& to, std::string_view text) {
  REQUIRE(::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL)
          == static_cast<ssize_t>(text.size()));
}

/// True if `poll` sees such an event within a time.
inline bool becomes_ready(int fd, short events,
                          std::chrono::milliseconds within) {
  pollfd one{fd, events, 0};
  return ::poll(&one, 1, static_cast<int>(within.count())) == 1;
}

/// Credentials of two processes of one job; making them takes a while.
inline const std::vector<job_credentials>& job() {
  static const auto made = make_job_credentials(2);
  return made;
}

/// A process at one end of a connection.
struct party {
  party(const tls_identity& own, side which, descriptor to)
    : socket(std::move(to)), session(own, which, socket.get()) {}

  /// Goes on with the handshake, and keeps what is thrown.
  void go_on() {
    if (failure || has_shaken)
      return;
    try {
      has_shaken = session.shake_hands() == wish::nothing;
    } catch (const error& e) {
      failure = e;
    }
  }

  /// Waits for bytes until there are that many or no more come.
  std::string read(std::size_t most) {
    std::string got(most, '\0');
    std::size_t size = 0;
    while (size < most) {
      const auto done =
        session.read(std::as_writable_bytes(std::span{got}).subspan(size));
      size += done.bytes;
      if (done.is_over)
        break;
      if (done.waits != wish::nothing)
        REQUIRE(becomes_ready(socket.get(), POLLIN, std::chrono::seconds{10}));
    }
    got.resize(size);
    return got;
  }

  void write(std::string_view text) {
    for (auto left = bytes_of(text); !left.empty();) {
      const auto done = session.write(left);
      left = left.subspan(done.bytes);
      if (done.waits != wish::nothing)
        REQUIRE(becomes_ready(socket.get(), POLLOUT, std::chrono::seconds{10}));
    }
  }

  descriptor socket;
  tls_session session;
  bool has_shaken = false;
  std::optional<error> failure{};
};

/// Lets both sides go on in turn, more often than a handshake needs.
template <class One, class Other>
void shake_hands(One& one, Other& other) {
  for (int turn = 0; turn < 10; ++turn) {
    one.go_on();
    other.go_on();
  }
}

/// Processes 0 (the server) and 1 of a job after their handshake.
struct couple {
  explicit couple(socket_pair sockets)
    : server(job()[0], side::server, std::move(sockets.one)),
      client(job()[1], side::client, std::move(sockets.other)) {
    shake_hands(client, server);
    REQUIRE(server.has_shaken);
    REQUIRE(client.has_shaken);
  }

  party server, client;
};

} // namespace tls_test
