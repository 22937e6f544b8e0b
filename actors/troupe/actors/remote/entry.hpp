// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>
#include <troupe/comm/tls/tls_session.hpp>
#include <troupe/comm/tls/tls_tunnel.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

namespace troupe::actors {

/// A connection that may be passed to CAF.
struct passage {
  descriptor socket;
  /// Set if the connection uses TLS; must outlive CAF's use of the socket.
  std::unique_ptr<comm::tls_tunnel> tunnel = nullptr;
};

/// A connection between process 0 and another process, before it is known that
/// both belong to the run: plain on loopback, TLS between hosts.
///
/// No function waits. A function that returns false is called again when `poll`
/// reports one of the events `awaits`. They throw error(peer_failure) if the
/// other side is gone or does not belong to the job.
///
/// Thread rule: one thread.
class entry {
public:
  explicit entry(descriptor socket); ///< plain
  entry(descriptor socket, const comm::tls_identity& own,
        comm::tls_session::side which); ///< TLS

  int fd() const noexcept { return socket_.get(); }
  short awaits() const noexcept { return awaits_; }

  /// Reads until `into` is full. `done` counts its bytes, from 0 on.
  bool receive(std::span<std::byte> into, std::size_t& done);
  /// Writes all of `from`, in the same way.
  bool send(std::span<const std::byte> from, std::size_t& done);

  /// The number that the other process's certificate names. Null if the
  /// connection is plain.
  std::optional<std::size_t> certified() const;
  /// Gives up the connection to whoever uses it from now on.
  passage take();

private:
  bool shake_hands();
  bool note(const comm::tls_session::progress& made, std::size_t& done);
  bool wait_to(comm::tls_session::wish wish);

  descriptor socket_;
  std::optional<comm::tls_session> tls_;
  bool has_shaken_ = false;
  short awaits_;
};

} // namespace troupe::actors
