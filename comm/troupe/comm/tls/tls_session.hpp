// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/tls/tls_identity.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace troupe::comm {

/// One end of a TLS 1.3 connection between two processes of a job. Both show
/// their certificates; only those of the job's authority are accepted. Which of
/// the processes it is, `peer` tells: nothing here compares that.
///
/// No function waits. One that cannot go on returns what it waits for; it is
/// called again when `poll` says that the socket is ready.
///
/// Thread rule: one thread at a time.
class tls_session {
public:
  enum class side { client, server };
  /// What a function waits for: nothing (it is done), or the socket.
  enum class wish { nothing, to_read, to_write };
  struct progress {
    std::size_t bytes = 0;      ///< that were read or written
    wish waits = wish::nothing; ///< why there are none
    bool is_over = false;       ///< the other side sends no more
  };

  /// @param own may be made from job_credentials on the spot
  /// @param socket may be a blocking one; must outlive the use of the session.
  ///   TCP_NODELAY is set
  /// Throws error(io_failure) if OpenSSL fails.
  tls_session(const tls_identity& own, side which, int socket);
  ~tls_session();
  tls_session(tls_session&&) noexcept;
  tls_session& operator=(tls_session&&) noexcept;

  /// Goes on with the handshake. Afterwards the other side is known to belong
  /// to the job. Throws error(peer_failure) with one clear line: "its
  /// certificate has expired", "its certificate is of another job", "it speaks
  /// no TLS", "it does not accept the certificate of this process: ...". The
  /// handshake of a client ends before the server has seen its certificate: if
  /// that is refused, `read` or `write` say so.
  wish shake_hands();
  /// After the handshake: the number of the process, from its certificate.
  std::size_t peer() const;

  ///@{
  /// Read or write some bytes, at least one if nothing has to be waited for:
  /// call them until they have a wish, because bytes that wait here are not
  /// seen by `poll`. A `write` that waits is repeated with the same bytes. The
  /// functions throw error(peer_failure) if the connection is broken, which
  /// includes an end that the other side has not told, or if the bytes are not
  /// genuine.
  progress read(std::span<std::byte> into);
  progress write(std::span<const std::byte> from);
  ///@}
  /// Tells the other side that no more comes, after all writes are done; `read`
  /// still works. To be called again if it waits, but not after an error.
  wish close() noexcept;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe::comm
