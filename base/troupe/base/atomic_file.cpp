// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/atomic_file.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/target_path.hpp>

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace troupe {

namespace {

/// Locks a file, so that other processes see it as in use.
bool lock(int descriptor) noexcept {
  return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
}

bool is_regular_file(int descriptor) noexcept {
  struct stat status = {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

void remove_leftover_files(const fs::path& target) {
  for (const auto& path : abandoned_temporaries(target)) {
    const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
      continue;
    if (is_regular_file(descriptor) && lock(descriptor))
      ::unlink(path.c_str());
    ::close(descriptor);
  }
}

/// Refuses a path that ends with a slash, which `resolve_target` would remove.
fs::path require_file_name(fs::path path) {
  const auto name = path.filename();
  if (name.empty() || name == "." || name == "..")
    throw error(errc::io_failure,
                path.string() + ": is a folder's name, not a file's");
  return path;
}

} // namespace

atomic_file::atomic_file(fs::path target)
  : target_(resolve_target(require_file_name(std::move(target)))) {
  struct stat old = {};
  const bool replaces = ::stat(target_.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode))
    throw error(errc::io_failure,
                target_.string() + ": exists and is not a regular file");
  remove_leftover_files(target_);
  // If a file is replaced, the new one is private until it gets the permissions
  // of the old one.
  const mode_t mode = replaces ? 0600 : 0666;
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = temporary_name(target_, attempt);
    descriptor_ =
      ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == max_temporary_names))
      fail_io(target_, "create it", errno);
  }
  (void)lock(descriptor_); // not every file system supports locks
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
  struct stat old = {};
  if (::stat(target_.c_str(), &old) == 0)
    take_owner_and_mode(descriptor_, old);
  if (::fsync(descriptor_) != 0)
    fail("flush it to disk", errno);
  if (::close(std::exchange(descriptor_, -1)) != 0)
    fail("close it", errno);
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail("rename to it", errno);
  temporary_.clear();
  sync_folder(folder_of(target_));
}

} // namespace troupe
