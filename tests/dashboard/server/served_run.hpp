// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "raw_client.hpp"

#include <troupe/dashboard/server/web_server.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace troupe::dashboard::test {

/// A server whose handler answers with what it was asked, and requests to it as
/// a browser sends them.
class served_run {
public:
  /// With patience for busy machines.
  served_run() : served_run({.patience = client_patience}) {}
  explicit served_run(web_server_options options)
    : served_run(std::move(options), web_access{}) {}
  served_run(web_server_options options, web_access access)
    : view_(access.cookie_of(right::view)),
      control_(access.cookie_of(right::control)),
      server(std::move(options), std::move(access),
             [](const web_request& request) { return answer(request); }) {}

  std::uint16_t port() const { return server.port(); }
  std::string host() const { return "127.0.0.1:" + std::to_string(port()); }

  std::string view_cookie() const { return cookie(view_); }
  std::string control_cookie() const { return cookie(control_); }

  /// A request with these further headers, each with its end of line.
  std::string request(const std::string& line,
                      const std::string& headers = {}) const {
    return line + " HTTP/1.1\r\nHost: " + host() + "\r\n" + headers + "\r\n";
  }

  raw_answer get(const std::string& target, const std::string& headers) const {
    raw_client client{port()};
    client.send(request("GET " + target, headers));
    return client.receive_answer();
  }

private:
  std::string cookie(const std::string& value) const {
    return "Cookie: troupe_" + std::to_string(port()) + "=" + value + "\r\n";
  }

  static web_response answer(const web_request& request) {
    if (request.path == "/throws")
      throw std::runtime_error("the handler is broken");
    if (request.path == "/throws-number")
      throw 7;
    if (request.path == "/large")
      return {200, "text/plain", std::string(20'000'000, 'x')};
    if (request.path == "/none")
      return {404, "text/plain", "none\n"};
    return {200, "text/plain",
            request.method + " " + request.path + " " + request.body
              + (request.may_control ? " controls" : " views")};
  }

  std::string view_, control_;

public:
  web_server server;
};

/// How many files this process has open.
inline std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"},
                       std::filesystem::directory_iterator{});
}

/// How many threads this process has.
inline std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator{"/proc/self/task"},
                       std::filesystem::directory_iterator{});
}

/// Waits until something holds. False if it takes too long.
template <class Condition>
bool comes_true(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + client_patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

} // namespace troupe::dashboard::test
