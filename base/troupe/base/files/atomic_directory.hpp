// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace troupe {

/// A folder that is written atomically. It is filled under `path()`, a new
/// folder NAME.troupe-tmp.PID next to the target, and `commit` puts it in place
/// in one step. Whenever the process or the machine stops, the target has
/// either its old or its new contents.
///
/// If the target is a folder with contents, it is exchanged with the new
/// folder. The new folder, and each new file that has an old one of its name,
/// gets the permissions, owner and group of the old one, as far as the user may
/// give them. The target's other contents are kept: files are hard-linked into
/// the new folder, and folders are created again with their owner and mode.
/// They must therefore not be mount points. A process whose current folder is
/// the target or lies in it stays in the old folder, which is removed, and what
/// it writes there is lost.
///
/// Folders that killed processes left next to the target are removed.
///
/// Every failure throws error(io_failure) with the path and the system's text.
/// Thread rule: one thread.
class atomic_directory {
public:
  /// Also throws if the target is not a folder or cannot be replaced: a folder
  /// that users share, such as /tmp (sticky bit), a mount point, the current
  /// folder or one of its parents, or a folder whose
  /// contents this user may not read or remove (also for their attributes, see
  /// chattr(1)), or that is on a file system that cannot exchange folders (NFS,
  /// FAT).
  explicit atomic_directory(std::filesystem::path target);
  /// Discards everything written, unless committed.
  ~atomic_directory();
  atomic_directory(const atomic_directory&) = delete;
  atomic_directory& operator=(const atomic_directory&) = delete;

  /// Throws if the target has a folder under one of these names, which are to
  /// be files: `commit` could not replace it.
  void require_files(const std::set<std::filesystem::path>& names) const;
  /// The folder to write to.
  const std::filesystem::path& path() const noexcept { return temporary_; }
  /// Makes the contents visible under the target's name. Files of the old
  /// folder with names in `gone` are not kept. Call it once, last. If the
  /// exchange fails, the contents stay in the folder NAME.saved.PID, which the
  /// error names.
  void commit(const std::set<std::filesystem::path>& gone = {});

private:
  void make_temporary();
  bool lock_temporary();
  void release_lock() noexcept;
  void require_replaceable() const;
  void require_exchange() const;
  bool put_in_free_place();
  void put_in_place(const std::set<std::filesystem::path>& gone);
  [[noreturn]] void keep_what_was_written(const std::string& why);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int lock_ = -1; ///< tells other processes that the temporary is in use
};

} // namespace troupe
