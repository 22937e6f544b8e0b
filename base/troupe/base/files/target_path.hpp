// SPDX-License-Identifier: Apache-2.0
#pragma once

// Common code of files and folders that are written atomically.

#include <filesystem>
#include <vector>

#include <sys/stat.h>

namespace troupe {

/// Throws error(io_failure): "PATH: cannot ACTION: " and the system's text for
/// the error number `code`.
[[noreturn]] void fail_io(const std::filesystem::path& path, const char* action,
                          int code);

/// The status of what is at `path`, without following a link.
struct stat status_of(const std::filesystem::path& path);

/// The real path of the target: symbolic links are followed, even to a path
/// that does not exist yet, and a trailing slash or `.` is removed. Throws
/// error(io_failure) for circular links.
std::filesystem::path resolve_target(std::filesystem::path target);

/// The folder that contains `path`.
std::filesystem::path folder_of(const std::filesystem::path& path);

/// Limit of attempts: temporaries of a crashed process with the same process id
/// can exist.
inline constexpr int max_temporary_names = 100;

/// Name number `attempt` for a temporary next to the target:
/// NAME.troupe-tmp.PID.
std::filesystem::path temporary_name(const std::filesystem::path& target,
                                     int attempt);

/// True if `path` is next to `target` and has the name of a temporary of it, of
/// any process. The next writer of `target` may remove it.
bool is_temporary_of(const std::filesystem::path& target,
                     const std::filesystem::path& path);

/// Temporaries of `target` (see `temporary_name`) whose process does not exist.
/// A process in another container may still use one; its lock (flock) then
/// shows that.
std::vector<std::filesystem::path>
abandoned_temporaries(const std::filesystem::path& target);

/// True if an open file or folder has this name. A process in another container
/// may have removed it as abandoned before it was locked.
bool still_has_name(int descriptor, const std::filesystem::path& path) noexcept;

/// True if this user may remove `entry` from its folder, or rename it there.
bool may_remove(const std::filesystem::path& entry,
                const std::filesystem::path& folder);

/// Throws error(io_failure) if not even its owner can remove or replace `path`
/// (chattr +i, +a), or what it contains.
void require_no_attribute(const std::filesystem::path& path);

/// Gives an open file or folder the owner, group and permissions of the one
/// that it replaces, as far as the user and the file system can. If the group
/// cannot be given, the group that it has gets no more permissions than others
/// have.
void take_owner_and_mode(int descriptor, const struct stat& old) noexcept;

/// Flushes the directory entries of a folder to disk.
void sync_folder(const std::filesystem::path& folder);

} // namespace troupe
