// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/job_epoch.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace troupe::apps {

/// An epoch of an elastic job on several hosts, as a host is told of it: with
/// the credentials of its own members, by their numbers (comm::to_text).
struct host_epoch {
  comm::job_epoch epoch;
  std::map<std::uint64_t, std::string> credentials;
};

///@{
/// What `troupe launch` tells `troupe launch-host` through its standard input:
/// first the name of the folder in which the ranks of the host meet, then each
/// epoch. `read_...` wait, and throw what `read_frame` throws.
std::string to_frame_of_meeting(const std::string& name);
std::string read_meeting(int fd);
std::string to_frame_of_epoch(const host_epoch& epoch);
host_epoch read_host_epoch(int fd);
///@}

/// The folder with that name in which the ranks of this host meet. Throws
/// error(invalid_argument) if others have access to the one that it is in.
std::string meeting_path(const std::string& name);

///@{
/// The lines that `troupe launch-host` prints: that it has made the folder;
/// then, each second, a sign of life. In between, words that ranks have told
/// (comm::all_told).
inline constexpr const char* host_is_ready = "ready";
inline constexpr const char* host_lives = "";
///@}

} // namespace troupe::apps
