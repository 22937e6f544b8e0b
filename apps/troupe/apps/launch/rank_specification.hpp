// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace troupe::apps {

/// What `troupe launch` tells `troupe launch-rank` on another host: how to
/// start a rank there. All texts can have any bytes but NUL.
struct rank_specification {
  std::vector<std::string> command;
  /// NAME=VALUE, added to those of the remote login.
  std::vector<std::string> variables;
  std::string folder; ///< in which the rank works
  /// Text of a file of credentials (comm::to_text). Empty: the rank needs none.
  std::string credentials;
  /// How long the rank has after SIGTERM when the launcher is gone.
  std::chrono::milliseconds grace{5000};
  /// The rank gets this part of the host's cores, of so many. With 0 parts it
  /// can use all.
  std::size_t part = 0, parts = 0;
};

/// Its length and CBOR, with Troupe's version.
std::string to_bytes(const rank_specification& specification);

/// Reads what `to_bytes` made, and no byte more. Waits for it. Throws
/// error(io_failure) if the bytes end too early, and error(bad_file) if they
/// are anything else or come from another version of Troupe.
rank_specification read_specification(int fd);

} // namespace troupe::apps
