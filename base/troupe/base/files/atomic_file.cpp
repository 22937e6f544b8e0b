// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/files/atomic_file.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/target_path.hpp>

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

/// Locks a file, so that other processes see it as in use. Not every file
/// system supports locks.
bool lock(int descriptor, int how) noexcept {
  int result = 0;
  do
    result = ::flock(descriptor, LOCK_EX | how);
  while (result != 0 && errno == EINTR);
  return result == 0;
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
    if (is_regular_file(descriptor) && lock(descriptor, LOCK_NB))
      ::unlink(path.c_str());
    ::close(descriptor);
  }
}

/// Refuses a file that could not be replaced at the end.
void require_replaceable(const fs::path& target) {
  require_no_attribute(target);
  if (!may_remove(target, folder_of(target)))
    throw error(errc::io_failure,
                target.string() + ": may not be replaced by this user");
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
  if (replaces)
    require_replaceable(target_);
  require_no_attribute(folder_of(target_));
  remove_leftover_files(target_);
  // If a file is replaced, the new one is private until it gets the permissions
  // of the old one.
  create_temporary(replaces ? 0600 : 0666);
}

void atomic_file::create_temporary(mode_t mode) {
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = temporary_name(target_, attempt);
    descriptor_ =
      ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == max_temporary_names))
      fail_io(target_, "create it", errno);
    // A process in another container may remove the file before it is locked.
    // It then has the lock for a moment.
    if (descriptor_ >= 0) {
      (void)lock(descriptor_, 0);
      if (!still_has_name(descriptor_, temporary_)
          && attempt < max_temporary_names)
        ::close(std::exchange(descriptor_, -1));
    }
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
  struct stat old = {};
  if (::stat(target_.c_str(), &old) == 0)
    take_owner_and_mode(descriptor_, old);
  if (::fsync(descriptor_) != 0)
    fail("flush it to disk", errno);
  // Before the lock is released: an unlocked file may be removed as abandoned.
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail("rename to it", errno);
  temporary_.clear();
  ::close(std::exchange(descriptor_, -1)); // all is on disk
  sync_folder(folder_of(target_));
}

} // namespace troupe
