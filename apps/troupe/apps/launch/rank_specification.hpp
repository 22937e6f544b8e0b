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
  /// Name of the folder in which the ranks of an elastic job meet on this host
  /// (meeting_path). Empty: the job is not elastic.
  std::string meeting = {};
  /// Text of a file of credentials (comm::to_text). Empty: the rank needs none.
  std::string credentials;
  /// How long the rank has after SIGTERM when the launcher is gone.
  std::chrono::milliseconds grace{5000};
  /// The rank gets this part of the host's cores, of so many. With 0 parts it
  /// can use all.
  std::size_t part = 0, parts = 0;
};

///@{
/// As a frame. `read_specification` waits for it, and throws what `read_frame`
/// throws.
std::string to_bytes(const rank_specification& specification);
rank_specification read_specification(int fd);
///@}

} // namespace troupe::apps
