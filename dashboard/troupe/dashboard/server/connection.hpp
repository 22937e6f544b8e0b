// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/dashboard/server/front_door.hpp>
#include <troupe/dashboard/server/web_server.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_set>

namespace troupe::dashboard {

/// A client of a web_server. It lives as long as an operation of its socket is
/// under way. Thread rule: the server's thread.
class connection {
public:
  using clock = std::chrono::steady_clock;

  virtual ~connection() = default;
  /// Receives and answers requests from now on.
  virtual void begin() = 0;
  /// A newer frame, if the client watches.
  virtual void show(const web_server::frame& newest) = 0;
  /// Looks at the clock: closes the connection if its time is up.
  virtual void tick(clock::time_point now) = 0;
  /// True if the client has shown no secret yet, and the connection is open.
  virtual bool is_stranger() const = 0;
  /// Ends the connection. It leaves the server's set later.
  virtual void close() = 0;

  /// Grows from one connection to the next.
  std::uint64_t number = 0;
};

/// What the connections of a server share. Thread rule: the server's thread,
/// except for `watchers`.
struct server_state {
  web_server_options options;
  front_door door;
  web_handler handler;
  web_server::frame newest{}; ///< may be null
  std::unordered_set<connection*> connections{};
  std::uint64_t last_number = 0; ///< of a connection
  /// Clients that watch. Written on the server's thread alone, and read
  /// elsewhere as a mere number: relaxed operations are enough.
  std::atomic<std::size_t> watchers{0};
};

} // namespace troupe::dashboard
