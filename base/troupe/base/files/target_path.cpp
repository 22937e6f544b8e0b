// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/files/target_path.hpp>

#include <troupe/base/error.hpp>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace troupe {

namespace {

/// Nobody else gives names with this in them, so leftovers can be removed by
/// name.
constexpr auto temporary_mark = ".troupe-tmp.";

/// Removes a number from the front of `text` and returns it; 0 if there is
/// none.
int take_number(std::string_view& text) {
  int number = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc{} || number <= 0)
    return 0;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return number;
}

/// The process id in a temporary name of `target` (see `temporary_name`); 0 for
/// all other names.
int maker_of_temporary(const fs::path& target, const fs::path& name) {
  const auto begin = target.filename().string() + temporary_mark;
  const auto text = name.string();
  if (!text.starts_with(begin))
    return 0;
  auto rest = std::string_view{text}.substr(begin.size());
  const auto process = take_number(rest);
  if (process > 0 && rest.starts_with('.')) {
    rest.remove_prefix(1);
    if (take_number(rest) == 0)
      return 0;
  }
  return rest.empty() ? process : 0;
}

/// The target of a chain of symbolic links. It need not exist.
fs::path follow_links(fs::path target) {
  constexpr int most_links = 40; // the system's limit
  std::error_code failure;
  for (int links = 0; fs::is_symlink(target, failure); ++links) {
    if (links == most_links)
      fail_io(target, "follow it", ELOOP);
    const auto next = fs::read_symlink(target, failure);
    if (failure)
      fail_io(target, "follow it", failure.value());
    target = target.parent_path() / next; // `next` itself if it is absolute
    if (!target.has_filename())
      target = target.parent_path();
  }
  return target;
}

bool is_running(int process) noexcept {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

} // namespace

void fail_io(const fs::path& path, const char* action, int code) {
  throw error(errc::io_failure, path.string() + ": cannot " + action + ": "
                                  + std::strerror(code));
}

struct stat status_of(const fs::path& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0)
    fail_io(path, "look at it", errno);
  return status;
}

fs::path resolve_target(fs::path target) {
  if (!target.has_filename())
    target = target.parent_path();
  target = follow_links(std::move(target));
  const auto name = target.filename();
  if (name != "." && name != "..")
    return target;
  std::error_code failure;
  auto resolved = fs::weakly_canonical(target, failure);
  return failure || resolved.empty() ? target : resolved;
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

fs::path temporary_name(const fs::path& target, int attempt) {
  auto name = target;
  name += temporary_mark + std::to_string(::getpid());
  if (attempt > 0)
    name += "." + std::to_string(attempt);
  return name;
}

bool is_temporary_of(const fs::path& target, const fs::path& path) {
  return folder_of(target) == folder_of(path)
         && maker_of_temporary(target, path.filename()) != 0;
}

std::vector<fs::path> abandoned_temporaries(const fs::path& target) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_of(target), ignored)) {
    const int maker = maker_of_temporary(target, entry.path().filename());
    if (maker != 0 && !is_running(maker))
      found.push_back(entry.path());
  }
  return found;
}

bool still_has_name(int descriptor, const fs::path& path) noexcept {
  struct stat open = {}, named = {};
  return ::fstat(descriptor, &open) == 0 && ::lstat(path.c_str(), &named) == 0
         && open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

bool may_remove(const fs::path& entry, const fs::path& folder) {
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return false;
  const auto above = status_of(folder / ".");
  const auto user = ::geteuid();
  return (above.st_mode & S_ISVTX) == 0 || user == 0 || user == above.st_uid
         || user == status_of(entry).st_uid;
}

void require_no_attribute(const fs::path& path) {
  constexpr auto refused =
    std::uint64_t{STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND};
  struct statx status = {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &status)
        == 0
      && (status.stx_attributes & refused) != 0)
    throw error(errc::io_failure,
                path.string() + ": is immutable or append-only (see chattr)");
}

void take_owner_and_mode(int descriptor, const struct stat& old) noexcept {
  if (::fchown(descriptor, old.st_uid, old.st_gid) != 0) // not root
    (void)!::fchown(descriptor, static_cast<uid_t>(-1), old.st_gid);
  // A rewritten file loses the set-user-ID, set-group-ID and sticky bits.
  auto mode = old.st_mode & (S_ISDIR(old.st_mode) ? 07777U : 0777U);
  struct stat now = {};
  if (::fstat(descriptor, &now) != 0 || now.st_gid != old.st_gid)
    mode &= ~070U | (mode & 07U) << 3;
  (void)::fchmod(descriptor, mode);
}

void sync_folder(const fs::path& folder) {
  int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  // Some file systems cannot sync a folder; the files themselves are safe.
  (void)::fsync(descriptor);
  ::close(descriptor);
}

} // namespace troupe
