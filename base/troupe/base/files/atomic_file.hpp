// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

#include <sys/types.h>

namespace troupe {

/// A file that is written atomically: as NAME.troupe-tmp.PID in the target's
/// folder, then flushed to disk and renamed by `commit`. An existing target
/// does not change until then. The new file gets its permissions, owner and
/// group, as far as the user may give them. Files that killed processes left
/// next to the target are removed.
///
/// Every failure throws error(io_failure) with the path and the system's
/// text; the temporary file is removed. Thread rule: one thread.
class atomic_file {
public:
  /// Refuses a target that exists and is not a regular file or cannot be
  /// replaced by this user, and one with the name of a folder: a slash, `.` or
  /// `..` at its end.
  explicit atomic_file(std::filesystem::path target);
  /// Discards everything written, unless committed.
  ~atomic_file();
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  /// Where the file is until `commit`, for libraries that open files by name.
  const std::filesystem::path& temporary() const noexcept { return temporary_; }
  /// Makes the file visible under its name. Call it once, last.
  void commit();

private:
  void create_temporary(mode_t mode);
  void discard() noexcept;
  [[noreturn]] void fail(const char* action, int code);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

} // namespace troupe
