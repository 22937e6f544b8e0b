// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/dashboard/server/access.hpp>
#include <troupe/dashboard/server/web_message.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace troupe::dashboard {

/// Where a server listens, and what it bears.
struct web_server_options {
  /// In figures, or "localhost". Other machines can reach any but those of
  /// loopback: these need TLS and a token file.
  std::string address = "127.0.0.1";
  std::uint16_t port = 0; ///< 0: the system chooses
  ///@{
  /// Files in PEM: the certificate with those that lead to its authority, and
  /// its private key without a password. Both or none. With them the server
  /// speaks TLS 1.2 or newer only.
  std::string certificate{};
  std::string key{};
  ///@}
  /// At a time. For one more, the oldest that has shown no secret is closed; if
  /// there is none, it is closed itself.
  std::size_t connections = 256;
  ///@{
  /// New connections: so many at once, and then per second. Some more wait in
  /// the system, first come, first served, for a second at most. The rest
  /// is left to their systems, which try again after a second or more. Neither
  /// costs the server anything.
  std::size_t connections_at_once = 64;
  double connections_per_second = 100;
  int connections_waiting = 100;
  ///@}
  std::size_t watchers = 64;          ///< at a time. More get status 503
  std::size_t head_bytes = 16 * 1024; ///< of a request
  std::size_t body_bytes = 4 * 1024;  ///< of a request
  /// How long a client may take to send a request, may be silent, and may take
  /// nothing of what is written to it.
  std::chrono::milliseconds patience{10'000};
};

/// Throws error(invalid_argument) for an address that is none, half of the
/// files for TLS, or an address that other machines reach without TLS or
/// without a token file. Any thread.
void require_safe(const web_server_options& options, bool has_token_file);

/// A server of HTTP/1.1 and WebSockets for one run. It has one thread, and does
/// all of docs/dashboard.md#server-and-access: links, cookies, limits,
/// `/healthz` and the WebSocket `/api/v1/live`. Requests for other paths go to
/// the handler once their senders have shown that they may make them.
///
/// Whatever clients send or leave out, it ends neither the process nor the
/// server, and holds no more than the limits allow.
class web_server {
public:
  /// A frame for those who watch. All clients share it.
  using frame = std::shared_ptr<const std::string>;

  /// Listens, and starts the thread. Throws as `require_safe` does. Throws
  /// error(io_failure) if the system refuses the address or port, or the files
  /// cannot be used, and error(kernel_failure) if no thread starts. Throws
  /// error(not_found) in a build without Boost.
  /// @param handler is called on the server's thread, also while the
  /// constructor
  ///   runs. If it throws, the client gets status 500, with the error's text
  web_server(web_server_options options, web_access access,
             web_handler handler);
  /// Closes all connections at once and ends the thread. Waits for a call of
  /// the handler to return, and for nothing else.
  ~web_server();
  web_server(const web_server&) = delete;
  web_server& operator=(const web_server&) = delete;

  /// Sends a frame to all watchers, as one binary message. A watcher that is
  /// still receiving an older one gets the newest when it has it; those between
  /// are left out. Who begins to watch gets the newest at once. Waits for no
  /// client. Any thread.
  void publish(frame newest);

  /// How many clients watch. Any thread.
  std::size_t watchers() const noexcept;
  /// Where the server listens. Any thread.
  std::uint16_t port() const noexcept;
  ///@{
  /// What to open in a browser, once each: to view, and to control as well.
  /// They do not change after their use. Any thread.
  const std::string& view_link() const noexcept;
  const std::string& control_link() const noexcept;
  ///@}
  /// Processor time that the thread has taken, in seconds. Any thread.
  double cpu_seconds() const noexcept;

private:
  class implementation;
  std::unique_ptr<implementation> implementation_;
};

} // namespace troupe::dashboard
