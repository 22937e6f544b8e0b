// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace troupe {

/// A folder that appears whole or not at all: filled under `path()`, a fresh
/// folder NAME.tmp.PID beside the target, and put in its place by `commit` in
/// one step. At whatever moment the process or the machine stops, the target is
/// what it was or what it was to be.
///
/// A target that is a folder with contents is exchanged for the new one. The
/// folder, and each file in it that has an old one of its name, keeps
/// permissions, owner and group, as far as the user may give them. What
/// others have in it comes along: each of their files is linked into the new
/// folder, each of their folders made again with its owner and mode. So they
/// must not be mount points, and another process whose current folder is the
/// target stays in the old one, which is removed.
///
/// Folders that killed processes left beside the target are removed.
///
/// Every failure throws error(io_failure) with the path and the system's text.
/// Thread rule: one thread.
class atomic_directory {
public:
  /// Throws likewise if the target is not a folder or cannot be replaced: a
  /// mount point, the current folder or one above it, one with contents that
  /// this user may not read or remove, or that are on a file system that cannot
  /// exchange folders (NFS, FAT).
  explicit atomic_directory(std::filesystem::path target);
  /// Discards all that was written, unless committed.
  ~atomic_directory();
  atomic_directory(const atomic_directory&) = delete;
  atomic_directory& operator=(const atomic_directory&) = delete;

  /// Where to write.
  const std::filesystem::path& path() const noexcept { return temporary_; }
  /// Makes the contents visible under the target's name; files called `gone` of
  /// the old folder do not come along. Call it once, last. If the exchange
  /// fails after all, what was written stays in the folder NAME.saved.PID,
  /// which the error names.
  void commit(const std::set<std::filesystem::path>& gone = {});

private:
  void make_temporary();
  void require_replaceable() const;
  void require_exchange() const;
  void put_in_place(const std::set<std::filesystem::path>& gone);
  [[noreturn]] void keep_what_was_written(const std::string& why);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int lock_ = -1; ///< says to others that the temporary is in use
};

} // namespace troupe
