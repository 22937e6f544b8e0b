// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/owned_folder.hpp>

#include <troupe/actors/remote/run_pass.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

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
constexpr std::chrono::minutes time_to_become_owner{10};

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

/// The folder gets another name first: who comes
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

/// Under an exclusive lock.
void remove_if_ownerless(const std::string& folder) {
  const descriptor owner{::open(owner_path(folder).c_str(),
                                O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (owner && lock_folder(owner, LOCK_EX | LOCK_NB)
      && is_still_in(folder, owner))
    remove_folder(folder);
}

/// A folder for the ranks of a host that has no owner: it is of an earlier
/// version, or who made it was killed at once. One that has just been made may
/// get an owner yet.
bool may_be_forgotten(const fs::directory_entry& folder) {
  const auto name = folder.path().filename().string();
  if (!name.starts_with("job-") || name.find(".host-") == name.npos)
    return false;
  std::error_code failed;
  const auto changed = folder.last_write_time(failed);
  return !failed
         && fs::file_time_type::clock::now() - changed > time_to_become_owner
         && !fs::exists(fs::symlink_status(folder.path() / owner_file, failed));
}

/// True if a process of this user was started as a rank that meets others in
/// the folder.
bool has_rank(const std::string& folder) {
  const auto variable =
    std::string{'\0'} + "TROUPE_RENDEZVOUS=" + folder + '\0';
  std::error_code ignored;
  for (auto& process : fs::directory_iterator("/proc", ignored)) {
    std::ifstream file{process.path() / "environ", std::ios::binary};
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    if (('\0' + all).find(variable) != all.npos)
      return true;
  }
  return false;
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
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) {
      remove_if_ownerless(entry.path().string());
      if (may_be_forgotten(entry) && !has_rank(entry.path().string()))
        remove_folder(entry.path().string());
    }
}

} // namespace troupe::apps
