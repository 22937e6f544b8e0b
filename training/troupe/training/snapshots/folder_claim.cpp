// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/snapshots/folder_claim.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace troupe {

namespace {

constexpr const char* claim_file = "owner";
/// The ranks of a job whose launcher was killed end a moment later.
constexpr std::chrono::seconds patience{2};
constexpr std::chrono::milliseconds between_looks{10};

enum class lock_result { taken, refused, unknown };

lock_result lock_claim(const descriptor& file, int how) {
  int result = 0;
  do
    result = ::flock(file.get(), how | LOCK_NB);
  while (result != 0 && errno == EINTR);
  if (result == 0)
    return lock_result::taken;
  return errno == EWOULDBLOCK ? lock_result::refused : lock_result::unknown;
}

struct owner_text {
  std::string run;
  std::string process; ///< the first one: "process 4711 on node-1"
};

owner_text read_owner(const descriptor& file) {
  std::array<char, 512> text;
  const auto bytes = ::pread(file.get(), text.data(), text.size(), 0);
  const std::string all{text.data(),
                        static_cast<std::size_t>(bytes > 0 ? bytes : 0)};
  const auto end = all.find('\n');
  if (end == all.npos)
    return {all, ""};
  return {all.substr(0, end),
          all.substr(end + 1, all.find('\n', end + 1) - end - 1)};
}

std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0)
    host[0] = '?';
  return "process " + std::to_string(::getpid()) + " on " + host.data();
}

/// False if it cannot be written, because the disk is full.
bool write_owner(const descriptor& file, const std::string& run) {
  const auto text = run + "\n" + this_process() + "\n";
  return ::ftruncate(file.get(), 0) == 0
         && ::pwrite(file.get(), text.data(), text.size(), 0)
              == static_cast<ssize_t>(text.size());
}

std::string name_of_this_claim() {
  static std::atomic<unsigned> count{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return this_process() + ", claim " + std::to_string(++count) + " at "
         + std::to_string(now);
}

[[noreturn]] void fail_claim(const std::filesystem::path& folder, int why) {
  throw error(errc::io_failure, "cannot write "
                                  + one_line((folder / claim_file).string())
                                  + ": " + std::system_category().message(why));
}

} // namespace

folder_claim::folder_claim(const std::filesystem::path& folder,
                           const std::string& run)
  : file_(::open((folder / claim_file).c_str(),
                 O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
  if (!file_)
    fail_claim(folder, errno);
  const auto own = run.empty() ? name_of_this_claim() : run;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto exclusive = lock_claim(file_, LOCK_EX);
    if (exclusive == lock_result::taken && !write_owner(file_, own))
      fail_claim(folder, errno);
    // From exclusive to shared, the system lets the lock go for a moment in
    // which another run can get it. So who has a shared lock reads the name.
    const auto shared = lock_claim(file_, LOCK_SH);
    if (shared == lock_result::unknown) {
      doubt_ = "the file system of " + one_line(folder.string())
               + " has no locks: take care that no other run uses it";
      return;
    }
    const auto owner = read_owner(file_);
    if (shared == lock_result::taken && owner.run == own)
      return;
    if (shared == lock_result::taken)
      ::flock(file_.get(), LOCK_UN);
    if (std::chrono::steady_clock::now() > deadline)
      throw error(errc::invalid_argument,
                  one_line(folder.string()) + " is used by another run ("
                    + one_line(owner.process)
                    + "): wait until it has ended, or use another folder");
    std::this_thread::sleep_for(between_looks);
  }
}

} // namespace troupe
