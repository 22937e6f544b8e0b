// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/atomic_file.hpp>

#include <troupe/base/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace troupe {

namespace {

[[noreturn]] void fail_io(const fs::path& path, const char* action, int code) {
  throw error(errc::io_failure, path.string() + ": cannot " + action + ": "
                                  + std::strerror(code));
}

/// The path that the target's contents live under: links followed, no
/// trailing slash.
fs::path resolve(fs::path target) {
  if (!target.has_filename())
    target = target.parent_path();
  std::error_code failure;
  auto resolved = fs::is_symlink(target, failure)
                    ? fs::weakly_canonical(target, failure)
                    : target;
  return failure || resolved.empty() ? target : resolved;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// Name number `attempt` for a temporary beside the target.
fs::path temporary_name(const fs::path& target, int attempt) {
  auto name = target;
  name += ".tmp." + std::to_string(::getpid());
  if (attempt > 0)
    name += "." + std::to_string(attempt);
  return name;
}

/// Temporaries of a crashed process with this number may be in the way.
constexpr int max_attempts = 100;

void sync_folder(const fs::path& folder) {
  int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  // Some file systems cannot sync a folder; the files themselves are safe.
  (void)::fsync(descriptor);
  ::close(descriptor);
}

void rename_over(const fs::path& from, const fs::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    fail_io(to, "rename to it", errno);
}

/// Renames all files below `from` into the same places below `to`.
void merge_into(const fs::path& from, const fs::path& to) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(from))
    if (!entry.is_directory())
      files.push_back(fs::relative(entry.path(), from));
  for (const auto& file : files) {
    fs::create_directories(folder_of(to / file));
    rename_over(from / file, to / file);
  }
  fs::remove_all(from);
}

} // namespace

atomic_file::atomic_file(fs::path target)
  : target_(resolve(std::move(target))) {
  std::error_code ignored;
  if (fs::exists(target_, ignored) && !fs::is_regular_file(target_, ignored))
    throw error(errc::io_failure,
                target_.string() + ": exists and is not a regular file");
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = temporary_name(target_, attempt);
    descriptor_ =
      ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == max_attempts))
      fail_io(target_, "create it", errno);
  }
}

atomic_file::~atomic_file() {
  discard();
}

void atomic_file::discard() noexcept {
  if (descriptor_ >= 0)
    ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty())
    ::unlink(temporary_.c_str());
  temporary_.clear();
}

void atomic_file::fail(const char* action, int code) {
  discard();
  fail_io(target_, action, code);
}

void atomic_file::write(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    auto written = ::write(descriptor_, from, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail("write it", errno);
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void atomic_file::commit() {
  if (::fsync(descriptor_) != 0)
    fail("flush it to disk", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0)
    fail("close it", errno);
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail("rename to it", errno);
  temporary_.clear();
  sync_folder(folder_of(target_));
}

atomic_directory::atomic_directory(fs::path target)
  : target_(resolve(std::move(target))) {
  std::error_code failure;
  if (fs::exists(target_, failure) && !fs::is_directory(target_, failure))
    throw error(errc::io_failure,
                target_.string() + ": exists and is not a folder");
  bool made = false;
  for (int attempt = 0; !made; ++attempt) {
    temporary_ = temporary_name(target_, attempt);
    made = fs::create_directory(temporary_, failure);
    if (!made && (failure || attempt == max_attempts))
      fail_io(target_, "create it", failure ? failure.value() : EEXIST);
  }
}

atomic_directory::~atomic_directory() {
  std::error_code ignored;
  if (!temporary_.empty())
    fs::remove_all(temporary_, ignored);
}

void atomic_directory::commit() {
  sync_folder(temporary_);
  try {
    if (fs::exists(target_) && !fs::is_empty(target_))
      merge_into(temporary_, target_);
    else
      rename_over(temporary_, target_);
  } catch (const fs::filesystem_error& failure) {
    fail_io(target_, "fill it", failure.code().value());
  }
  temporary_.clear();
  sync_folder(folder_of(target_));
}

} // namespace troupe
