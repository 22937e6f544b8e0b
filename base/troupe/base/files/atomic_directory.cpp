// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/files/atomic_directory.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/target_path.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace troupe {

namespace {

using names = std::set<fs::path>;

constexpr auto folder_for_file = "is a folder where a file is saved";

int exchange(const fs::path& a, const fs::path& b) noexcept {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
}

/// Removes a folder, if possible: the next save tries again. Needs a descriptor
/// per level.
void discard_folder(const fs::path& folder) noexcept {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

/// Opens and locks a folder, so that other processes see it as in use. -1 if
/// that fails, for example because another process has the lock.
/// @param how LOCK_NB, or 0 to wait for that process
int lock_folder(const fs::path& folder, int how) noexcept {
  const int descriptor =
    ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor >= 0 && ::flock(descriptor, LOCK_EX | how) != 0) {
    ::close(descriptor);
    return -1;
  }
  return descriptor;
}

void remove_leftovers(const fs::path& target) {
  for (const auto& path : abandoned_temporaries(target)) {
    const int lock = lock_folder(path, LOCK_NB);
    if (lock < 0)
      continue;
    discard_folder(path);
    ::close(lock);
  }
}

bool has_contents(const fs::path& folder) {
  std::error_code failure;
  return fs::is_directory(folder, failure) && !fs::is_empty(folder, failure)
         && !failure;
}

/// Does nothing if `to` cannot be opened, for example because of the user's
/// umask.
void take_owner_and_mode_of(const struct stat& old, const fs::path& to) {
  const int descriptor =
    ::open(to.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0)
    return;
  take_owner_and_mode(descriptor, old);
  ::close(descriptor);
}

/// The same for a file that replaces `old`, which may be a link to a file.
void take_owner_and_mode_of(const fs::path& old, const fs::path& to) {
  struct stat status = {};
  if (::stat(old.c_str(), &status) == 0 && S_ISREG(status.st_mode))
    take_owner_and_mode_of(status, to);
}

/// Creates a hard link to a file.
void keep_file(const fs::directory_entry& file, const fs::path& to) {
  if (::link(file.path().c_str(), to.c_str()) == 0)
    return;
  // Some file systems have no hard links, and users may not link to all files
  // of others.
  const int code = errno;
  if (code == EXDEV || !file.is_regular_file())
    fail_io(file.path(), "keep it beside new files", code);
  fs::copy_file(file.path(), to);
}

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw error(errc::io_failure, path.string() + ": " + why);
}

/// A folder moves with its contents, but mount points cannot be moved.
void require_no_mount(const fs::path& folder, dev_t device) {
  if (status_of(folder).st_dev != device)
    refuse(folder, "is a mount point, which cannot move: save into another "
                   "folder");
}

/// Refuses a folder whose contents cannot move with it, or that this user may
/// not remove: the old folder would be left next to the new one.
void require_movable_contents(const fs::path& folder, dev_t device) {
  std::error_code failure;
  fs::directory_iterator entry(folder, failure), end;
  for (; !failure && entry != end; entry.increment(failure)) {
    const auto& path = entry->path();
    if (!may_remove(path, folder))
      refuse(path, "may not be removed by this user: save into another folder");
    require_no_attribute(path);
    if (!S_ISDIR(status_of(path).st_mode))
      continue;
    require_no_mount(path, device);
    require_movable_contents(path, device);
  }
  if (failure)
    fail_io(folder, "read it", failure.value());
}

/// Hard-links files that only `from` has into `to`, except those named in
/// `gone` (top level only), and creates missing folders. Folders, and files
/// that both have, get the owner and mode of those in `from`.
void keep_others(const fs::path& from, const fs::path& to, const names& gone) {
  const auto device = status_of(from).st_dev;
  for (const auto& entry : fs::directory_iterator(from)) {
    const auto name = entry.path().filename();
    const auto target = to / name;
    const bool is_folder = fs::is_directory(entry.symlink_status());
    const auto there = fs::symlink_status(target);
    if (fs::exists(there) && is_folder != fs::is_directory(there))
      refuse(entry.path(),
             is_folder ? folder_for_file : "is a file where a folder is saved");
    if (!is_folder) {
      if (fs::exists(there))
        take_owner_and_mode_of(entry.path(), target);
      else if (!gone.contains(name))
        keep_file(entry, target);
      continue;
    }
    require_no_mount(entry.path(), device);
    if (!fs::exists(there))
      fs::create_directory(target);
    keep_others(entry.path(), target, {});
    take_owner_and_mode_of(status_of(entry.path()), target);
  }
}

/// True if the process's current folder is this one or lies in it.
bool holds_current_folder(const fs::path& folder) {
  std::error_code ignored;
  auto above = fs::current_path(ignored);
  for (;;) {
    if (fs::equivalent(folder, above, ignored))
      return true;
    if (!above.has_relative_path())
      return false;
    above = above.parent_path();
  }
}

void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (fs::is_directory(entry.symlink_status()))
      sync_folder(entry.path());
  sync_folder(folder);
}

} // namespace

atomic_directory::atomic_directory(fs::path target)
  : target_(resolve_target(std::move(target))) {
  std::error_code ignored;
  if (fs::exists(target_, ignored) && !fs::is_directory(target_, ignored))
    refuse(target_, "exists and is not a folder");
  if (!target_.has_relative_path())
    refuse(target_, "is the root folder, which cannot be replaced: save into a "
                    "folder in it");
  require_no_attribute(folder_of(target_));
  remove_leftovers(target_);
  make_temporary();
  try {
    if (fs::is_directory(target_, ignored))
      require_replaceable();
  } catch (...) {
    release_lock();
    discard_folder(temporary_);
    throw;
  }
}

void atomic_directory::make_temporary() {
  // If a folder is replaced, the new one is private until it gets the
  // permissions of the old one.
  struct stat old = {};
  const mode_t mode = ::stat(target_.c_str(), &old) == 0 ? 0700 : 0777;
  bool made = false;
  for (int attempt = 0; !made; ++attempt) {
    temporary_ = temporary_name(target_, attempt);
    made = ::mkdir(temporary_.c_str(), mode) == 0;
    if (!made && (errno != EEXIST || attempt == max_temporary_names))
      fail_io(target_, "create it", errno);
    if (made)
      made = lock_temporary() || attempt == max_temporary_names;
  }
}

/// False if a process in another container has removed the folder before it was
/// locked.
bool atomic_directory::lock_temporary() {
  lock_ = lock_folder(temporary_, 0);
  std::error_code ignored;
  if (lock_ < 0) // not every file system supports locks
    return fs::exists(temporary_, ignored);
  if (still_has_name(lock_, temporary_))
    return true;
  release_lock();
  return false;
}

void atomic_directory::release_lock() noexcept {
  if (lock_ >= 0)
    ::close(std::exchange(lock_, -1));
}

// Called at the start, because hours of work can lie between here and `commit`.
void atomic_directory::require_replaceable() const {
  const auto status = status_of(target_);
  const auto device = status.st_dev;
  if (device != status_of(folder_of(target_) / ".").st_dev)
    refuse(target_, "is a mount point, which cannot be replaced: save into a "
                    "folder in it");
  if (holds_current_folder(target_))
    refuse(target_, "is the current folder or one above it, which would be "
                    "removed: save from outside of it or into a new folder");
  if (!may_remove(target_, folder_of(target_)))
    refuse(target_, "may not be replaced by this user: save into another "
                    "folder");
  require_no_attribute(target_);
  require_movable_contents(target_, device);
  if ((status.st_mode & S_ISVTX) != 0)
    refuse(target_, "is shared by users, as /tmp is, who would lose what they "
                    "write meanwhile: save into a folder in it");
  if (has_contents(target_))
    require_exchange();
}

void atomic_directory::require_exchange() const {
  std::error_code ignored;
  const auto a = temporary_ / "a", b = temporary_ / "b";
  for (const auto& folder : {a, b})
    if (::mkdir(folder.c_str(), 0700) != 0)
      fail_io(folder, "create it", errno);
  const int code = exchange(a, b) == 0 ? 0 : errno;
  fs::remove(a, ignored);
  fs::remove(b, ignored);
  if (code != 0)
    refuse(target_, std::string{"has files in it, and its file system cannot "
                                "replace a folder in one step ("}
                      + std::strerror(code) + "): save into a new folder");
}

atomic_directory::~atomic_directory() {
  release_lock(); // its descriptor may be the last one
  if (!temporary_.empty())
    discard_folder(temporary_);
}

void atomic_directory::require_files(const names& files) const {
  for (const auto& name : files)
    if (fs::is_directory(fs::symlink_status(target_ / name)))
      refuse(target_ / name, folder_for_file);
}

void atomic_directory::commit(const names& gone) {
  try {
    put_in_place(gone);
  } catch (const fs::filesystem_error& failure) {
    keep_what_was_written(failure.path1().string() + ": "
                          + failure.code().message());
  } catch (const error& failure) {
    keep_what_was_written(failure.message());
  }
  sync_folder(folder_of(target_));
  if (!temporary_.empty())
    discard_folder(temporary_);
  temporary_.clear();
}

/// False if the target has contents: another process may have saved there a
/// moment ago.
bool atomic_directory::put_in_free_place() {
  if (has_contents(target_))
    return false;
  struct stat old = {};
  if (::stat(target_.c_str(), &old) == 0)
    take_owner_and_mode_of(old, temporary_);
  sync_tree(temporary_);
  if (std::rename(temporary_.c_str(), target_.c_str()) == 0) {
    temporary_.clear();
    return true;
  }
  if (errno != ENOTEMPTY && errno != EEXIST)
    fail_io(target_, "rename to it", errno);
  return false;
}

void atomic_directory::put_in_place(const names& gone) {
  if (put_in_free_place())
    return;
  keep_others(target_, temporary_, gone);
  take_owner_and_mode_of(status_of(target_), temporary_);
  sync_tree(temporary_);
  if (exchange(temporary_, target_) != 0)
    fail_io(target_, "replace it", errno);
  // Files may have been added to the old folder meanwhile. They are kept if
  // possible.
  try {
    keep_others(temporary_, target_, gone);
  } catch (const std::exception&) {
  }
}

void atomic_directory::keep_what_was_written(const std::string& why) {
  auto kept = target_;
  kept += ".saved." + std::to_string(::getpid());
  if (std::rename(temporary_.c_str(), kept.c_str()) != 0)
    throw error(errc::io_failure, why);
  temporary_.clear();
  throw error(errc::io_failure,
              why + "; what was to be saved there is in " + kept.string());
}

} // namespace troupe
