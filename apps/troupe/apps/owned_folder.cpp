// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/owned_folder.hpp>

#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::apps {

namespace {

namespace fs = std::filesystem;

// All owners hold a shared lock. Who gets an exclusive one knows that nobody
// owns the folder, and nobody can become an owner meanwhile.

constexpr const char* owner_file = "owner";

std::string owner_path(const std::string& folder) {
  return folder + "/" + owner_file;
}

bool lock_folder(const descriptor& owner, int how) {
  int result = 0;
  do
    result = ::flock(owner.get(), how);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

[[noreturn]] void fail_in(const std::string& folder, int why) {
  throw error(errc::io_failure, "cannot make " + one_line(folder)
                                  + ", where the ranks of the job meet: "
                                  + std::system_category().message(why));
}

/// False if the folder was removed, or replaced, since its file was opened.
bool is_still_in(const std::string& folder, const descriptor& owner) {
  struct stat held = {}, found = {};
  return ::fstat(owner.get(), &held) == 0
         && ::lstat(owner_path(folder).c_str(), &found) == 0
         && held.st_ino == found.st_ino && held.st_dev == found.st_dev;
}

void remove_contents(const std::string& folder) {
  std::error_code ignored;
  for (auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename() != owner_file)
      fs::remove_all(entry.path(), ignored);
}

/// Under an exclusive lock. The folder gets another name first: who comes
/// meanwhile makes a new one.
void remove_folder(const std::string& folder) {
  const auto away = folder + ".gone-" + std::to_string(::getpid());
  std::error_code ignored;
  if (::rename(folder.c_str(), away.c_str()) == 0)
    fs::remove_all(away, ignored);
}

/// False if there is no such folder any more. Throws if it is not this user's.
bool is_own(const std::string& folder) {
  try {
    actors::require_own_folder(folder);
    return true;
  } catch (const error&) {
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(folder, ignored)))
      throw;
    return false;
  }
}

void remove_if_ownerless(const std::string& folder) {
  const descriptor owner{::open(owner_path(folder).c_str(),
                                O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (owner && lock_folder(owner, LOCK_EX | LOCK_NB)
      && is_still_in(folder, owner))
    remove_folder(folder);
}

} // namespace

owned_folder::owned_folder(std::string path) : path_(std::move(path)) {
  while (!enter()) {
    // It was removed meanwhile.
  }
}

bool owned_folder::enter() {
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST)
    fail_in(path_, errno);
  if (!is_own(path_))
    return false;
  owner_ = descriptor{::open(owner_path(path_).c_str(),
                             O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!owner_ && errno == ENOENT)
    return false;
  if (!owner_)
    fail_in(path_, errno);
  if (lock_folder(owner_, LOCK_EX | LOCK_NB) && is_still_in(path_, owner_))
    remove_contents(path_);
  if (!lock_folder(owner_, LOCK_SH))
    fail_in(path_, errno);
  return is_still_in(path_, owner_);
}

owned_folder::~owned_folder() {
  if (lock_folder(owner_, LOCK_EX | LOCK_NB) && is_still_in(path_, owner_))
    remove_folder(path_);
}

descriptor hold_folder(const std::string& path) {
  descriptor owner{
    ::open(owner_path(path).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
  if (owner)
    lock_folder(owner, LOCK_SH);
  return owner;
}

void remove_ownerless(const std::string& in) {
  std::error_code ignored;
  for (auto& entry : fs::directory_iterator(in, ignored))
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored))
      remove_if_ownerless(entry.path().string());
}

} // namespace troupe::apps
