// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/net/secret.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace troupe::comm {

/// What a process proves with that it belongs to a job whose processes are on
/// several hosts, and which of them it is. Whoever has it can take part.
///
/// Each job has a certificate authority of its own. Its key is never stored: it
/// signs the certificates of the processes and is forgotten.
///
/// Thread rule: the functions can be called on any thread.
struct job_credentials {
  using secret = troupe::secret;

  std::string authority;   ///< certificate of the authority, PEM
  std::string certificate; ///< of this process, PEM; has its number
  std::string key;         ///< its private key, PEM
  /// What processes show process 0, and what it answers: as `run_pass`.
  secret knock{}, answer{};
};

/// Makes the credentials of all processes of a job; result i is that of process
/// i. Certificates hold from an hour ago, because clocks differ, for as long as
/// given, at most a hundred years. Throws error(invalid_argument) if that is
/// longer, and error(io_failure) if OpenSSL fails.
std::vector<job_credentials>
make_job_credentials(std::size_t processes,
                     std::chrono::hours lifetime = std::chrono::hours{24 * 30});

///@{
/// As text, for a file: three blocks of PEM, then one with both secrets and a
/// checksum of all. `parse_credentials` throws error(bad_file) for anything
/// else.
std::string to_text(const job_credentials& credentials);
job_credentials parse_credentials(const std::string& text);
///@}

/// Reads such a file. If the path is a folder, the file is "rank-P.credentials"
/// in it, P being the number of the process. Throws error(io_failure),
/// error(bad_file), and error(invalid_argument) if the file belongs to another
/// user, others may read it, or the credentials are of another process.
job_credentials read_credentials(const std::string& path, std::size_t process);
/// Writes a file that only its owner can read. Throws error(io_failure), also
/// if there is such a file.
void write_credentials(const std::string& path,
                       const job_credentials& credentials);

} // namespace troupe::comm
