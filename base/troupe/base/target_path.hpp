// SPDX-License-Identifier: Apache-2.0
#pragma once

// What files and folders that appear whole or not at all have in common.

#include <filesystem>
#include <vector>

#include <sys/stat.h>

namespace troupe {

/// Throws error(io_failure): "PATH: cannot ACTION: " and the system's text for
/// the error number `code`.
[[noreturn]] void fail_io(const std::filesystem::path& path, const char* action,
                          int code);

/// The path that the target's contents live under: links followed, also to what
/// is not there yet, no trailing slash, no `.` at its end. Throws
/// error(io_failure) for links that lead in a circle.
std::filesystem::path resolve_target(std::filesystem::path target);

/// Where `path` lies.
std::filesystem::path folder_of(const std::filesystem::path& path);

/// Temporaries of a crashed process with this number may be in the way.
inline constexpr int max_temporary_names = 100;

/// Name number `attempt` for a temporary beside the target: NAME.tmp.PID.
std::filesystem::path temporary_name(const std::filesystem::path& target,
                                     int attempt);

/// Files and folders with a name of `temporary_name` of `target` whose process
/// the system does not know. One of another container may still use them, whose
/// lock (flock) then tells.
std::vector<std::filesystem::path>
abandoned_temporaries(const std::filesystem::path& target);

/// Gives an open file or folder the owner, group and permissions of what it is
/// to replace, as far as the user and the file system can. Where it cannot have
/// the group, its own group may do what others may, and no more.
void take_owner_and_mode(int descriptor, const struct stat& old) noexcept;

/// Waits until the names in a folder are on disk.
void sync_folder(const std::filesystem::path& folder);

} // namespace troupe
