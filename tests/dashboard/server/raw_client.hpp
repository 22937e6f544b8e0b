// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace troupe::dashboard::test {

/// For what should come at once. Long, because machines can be busy.
inline constexpr std::chrono::milliseconds client_patience{60'000};

/// An answer of HTTP, as it came.
struct raw_answer {
  unsigned status = 0; ///< 0: there is none
  std::string head{};  ///< with the empty line at its end
  std::string body{};

  /// The value of a header, in the spelling of the server. Empty: none.
  std::string header(const std::string& name) const {
    const auto at = head.find("\r\n" + name + ": ");
    if (at == head.npos)
      return "";
    const auto begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

/// A connection over which a test sends any bytes.
class raw_client {
public:
  /// @param receive_buffer of the system, in bytes. 0: as usual
  explicit raw_client(std::uint16_t port, int receive_buffer = 0)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0)
      ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer,
                   sizeof receive_buffer);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&place),
                  sizeof place)
        != 0)
      throw std::runtime_error("cannot connect");
  }

  int socket() const { return socket_.get(); }

  /// False if the server has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0)
        return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  /// Exactly so many bytes, or those before the end of the connection.
  std::string receive(std::size_t bytes) {
    while (received_.size() < bytes && receive_some()) {
    }
    return take(std::min(bytes, received_.size()));
  }

  /// Up to and including `end`, or up to the end of the connection.
  std::string receive_until(std::string_view end) {
    std::size_t at = 0;
    while ((at = received_.find(end)) == received_.npos)
      if (!receive_some())
        return take(received_.size());
    return take(at + end.size());
  }

  raw_answer receive_answer(bool has_body = true) {
    raw_answer answer;
    answer.head = receive_until("\r\n\r\n");
    if (!answer.head.starts_with("HTTP/1.1 "))
      return answer;
    answer.status = static_cast<unsigned>(std::stoul(answer.head.substr(9, 3)));
    const auto length = answer.header("Content-Length");
    if (has_body && !length.empty())
      answer.body = receive(std::stoul(length));
    return answer;
  }

  /// Waits until the server closes the connection. Drops what comes before.
  bool gets_closed() {
    while (receive_some())
      received_.clear();
    return is_at_end_;
  }

private:
  /// False at the end of the connection, and if nothing comes.
  bool receive_some() {
    pollfd ready{socket_.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(client_patience.count())) != 1) {
      FAIL_CHECK("the server is silent");
      return false;
    }
    std::array<char, 65536> some;
    const auto n = ::recv(socket_.get(), some.data(), some.size(), 0);
    is_at_end_ = n <= 0;
    if (n > 0)
      received_.append(some.data(), static_cast<std::size_t>(n));
    return n > 0;
  }

  std::string take(std::size_t bytes) {
    auto taken = received_.substr(0, bytes);
    received_.erase(0, bytes);
    return taken;
  }

  descriptor socket_;
  std::string received_;
  bool is_at_end_ = false;
};

} // namespace troupe::dashboard::test
