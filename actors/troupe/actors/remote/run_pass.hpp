// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/tls/job_credentials.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// The secret of a run, known only to its processes. The connecting process
/// sends `knock`, the listening process replies with `answer`. Both are random.
/// On one host, a file that only its owner can read passes them on; among
/// several hosts, they are part of the credentials.
struct run_pass {
  using token = comm::job_credentials::secret;
  token knock{};
  token answer{};

  static run_pass random();
};

/// The folder for files of runs: `folder` or, if that is empty,
/// /tmp/troupe-UID, which is created if necessary. Throws
/// error(invalid_argument) if anyone but the owner has access to it.
std::string run_folder(const std::string& folder);
/// Path of the pass file of the run that listens on `port`, in that folder.
std::string pass_path(const std::string& folder, std::uint16_t port);
/// The same for the socket at which the processes of the run exchange memory.
std::string group_path(const std::string& folder, std::uint16_t port);

/// Throws as `run_folder` does, error(io_failure) also if there is no such
/// folder.
void require_own_folder(const std::string& folder);
/// The numbers in the names of passes in a folder, "PORT.pass".
std::vector<std::uint16_t> ports_of_passes(const std::string& folder);
/// Replaces the file that a run that was killed has left. Throws
/// error(io_failure).
void write_pass(const std::string& path, const run_pass& pass);
/// Throws error(peer_failure) if there is none, or only a part of one.
run_pass read_pass(const std::string& path);

} // namespace troupe::actors
