// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/tls/job_credentials.hpp>

#include <memory>
#include <string>

struct ssl_ctx_st;

namespace troupe::comm {

/// Checked credentials of this process, as TLS connections use them. To make
/// one takes longer than to make a connection, so that a process that listens
/// makes it once. Copies share it.
///
/// Thread rule: any thread.
class tls_identity {
public:
  /// Throws error(bad_file) if the credentials cannot be used, for example
  /// because the key does not belong to the certificate, and error(io_failure)
  /// if OpenSSL fails.
  tls_identity(const job_credentials& own);

  /// For `tls_session`.
  ssl_ctx_st* context() const noexcept { return context_.get(); }

private:
  std::shared_ptr<ssl_ctx_st> context_;
};

/// The version of OpenSSL that runs, such as "3.0.19". Any thread.
std::string tls_library_version();

} // namespace troupe::comm
