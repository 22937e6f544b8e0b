// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/tls/certificates.hpp>

#include <cstddef>
#include <span>

namespace troupe::comm {

/// The socket under a TLS connection. It never waits, and a write to a closed
/// connection raises no signal: OpenSSL's own way to use sockets does not offer
/// that. It also keeps what is of use for the text of an error.
///
/// Thread rule: one thread at a time.
class wire {
public:
  /// @param socket of TCP sends small messages at once from now on
  explicit wire(int socket);
  wire(const wire&) = delete;
  wire& operator=(const wire&) = delete;

  /// Gives OpenSSL this wire, which must outlive the result. Null if there is
  /// no memory.
  bio_handle bio();

  /// False if the first bytes that came are not those of TLS.
  bool carries_tls() const noexcept { return carries_tls_; }
  /// True if the other side has ended the connection.
  bool is_at_end() const noexcept { return is_at_end_; }
  /// Number of the error that broke the connection, otherwise 0.
  int failure() const noexcept { return failure_; }

private:
  struct functions; // that OpenSSL calls

  /// Looks at bytes of the connection as they come.
  void look_at(std::span<const std::byte> come);

  int socket_;
  std::size_t looked_at_ = 0;
  bool carries_tls_ = true;
  bool is_at_end_ = false;
  int failure_ = 0;
};

} // namespace troupe::comm
