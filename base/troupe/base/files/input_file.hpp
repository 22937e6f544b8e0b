// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe {

/// A regular file that is read sequentially. Its size is known before memory
/// for its contents is allocated.
///
/// All messages begin with the file's path. Thread rule: one thread.
class input_file {
public:
  /// Throws error(not_found) if there is no such file, error(bad_file) if it
  /// is a folder, pipe or device, error(io_failure) if it cannot be opened.
  explicit input_file(std::filesystem::path path);
  ~input_file();
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }         ///< bytes
  std::uint64_t position() const noexcept { return position_; } ///< bytes read
  std::uint64_t remaining() const noexcept { return size_ - position_; }

  /// Fills `target` with the next `bytes` bytes. Throws error(bad_file) with
  /// byte counts if fewer remain; `what` names the contents in the error.
  void read(void* target, std::size_t bytes, const char* what = "data");

  /// Returns the next `bytes` bytes. Allocates nothing if fewer remain.
  std::string read_string(std::uint64_t bytes, const char* what = "data");

  /// Throws error(bad_file) with byte counts unless `bytes` bytes remain.
  void require(std::uint64_t bytes, const char* what) const;

private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
};

/// The type of what a path names, after following links; file_type::not_found
/// if there is nothing. Throws error(not_found) with the path for a link that
/// leads nowhere. Throws error(io_failure) with the path if the system cannot
/// tell: a name that is too long, links in a circle, a folder that the
/// user may not search.
std::filesystem::file_type input_type(const std::filesystem::path& path);

/// Reads the whole file. Throws like `input_file`, and error(bad_file) if it is
/// longer than `limit` bytes.
std::string read_whole_file(const std::filesystem::path& path,
                            std::uint64_t limit);

} // namespace troupe
