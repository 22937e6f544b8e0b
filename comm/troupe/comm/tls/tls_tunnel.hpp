// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>
#include <troupe/comm/tls/tls_session.hpp>

#include <chrono>
#include <memory>
#include <thread>

namespace troupe::comm {

/// Passes bytes between a TLS connection and a plain socket of this process, on
/// a thread of its own: for libraries that know sockets only, such as CAF.
///
/// If one of the two sends no more, what has come from it is passed on, and
/// then the other one is told so; bytes in the other direction still pass. The
/// tunnel ends when neither sends more, or when the TLS connection is broken.
/// It then closes both sockets. Bytes that one side does not take hold up the
/// other; at most 64 KiB wait in each direction. If the plain end is closed,
/// what the TLS connection still sends is dropped.
///
/// Thread rule: one thread at a time.
class tls_tunnel {
public:
  /// @param session after its handshake; uses `outer`
  /// Throws error(io_failure) if there are no sockets, and
  /// error(kernel_failure) if there is no thread.
  tls_tunnel(descriptor outer, tls_session session);
  /// Ends both connections. What has come from the plain end is still passed
  /// on, unless the other side takes it so slowly that this lasts 0.2 s.
  ~tls_tunnel();
  tls_tunnel(const tls_tunnel&) = delete;
  tls_tunnel& operator=(const tls_tunnel&) = delete;

  /// The plain end, once. Blocking, close-on-exec.
  descriptor take_inner();
  /// Waits until both sides have ended, but not for longer.
  void wait_for_end(std::chrono::milliseconds longest) const;

private:
  struct ends;
  std::unique_ptr<ends> ends_;
  descriptor inner_; ///< until it is taken
  std::thread thread_;
};

} // namespace troupe::comm
