// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/run_pass.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/net/secret.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace troupe::actors {

namespace {

std::string reason_of(int number) {
  return std::system_category().message(number);
}

/// Reads or writes a whole token.
template <class Transfer, class Token>
bool whole(Transfer transfer, int fd, Token& token) {
  for (std::size_t done = 0; done < token.size();) {
    const auto n = transfer(fd, token.data() + done, token.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

/// What the names of a run's files begin with.
std::string run_path(const std::string& folder, std::uint16_t port) {
  return run_folder(folder) + "/" + std::to_string(port);
}

} // namespace

run_pass run_pass::random() {
  return {random_secret(), random_secret()};
}

void require_own_folder(const std::string& folder) {
  struct stat found {};
  if (::lstat(folder.c_str(), &found) != 0)
    throw error(errc::io_failure, "no folder for the pass of a run: " + folder
                                    + ": " + reason_of(errno));
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid()
      || (found.st_mode & 077) != 0)
    throw error(errc::invalid_argument,
                folder
                  + " must be a folder of this user that nobody else may enter "
                    "(mode 0700): it holds the pass of a run");
}

std::string run_folder(const std::string& folder) {
  auto in = folder;
  if (in.empty()) {
    in = "/tmp/troupe-" + std::to_string(::geteuid());
    ::mkdir(in.c_str(), 0700); // fails if it exists, which is fine
  }
  require_own_folder(in);
  return in;
}

std::string pass_path(const std::string& folder, std::uint16_t port) {
  return run_path(folder, port) + ".pass";
}

std::string group_path(const std::string& folder, std::uint16_t port) {
  return run_path(folder, port) + ".group";
}

std::vector<std::uint16_t> ports_of_passes(const std::string& folder) {
  std::vector<std::uint16_t> ports;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), last;
       !failed && at != last; at.increment(failed)) {
    const auto name = at->path().filename().string();
    std::uint16_t port = 0;
    const auto end =
      std::from_chars(name.data(), name.data() + name.size(), port).ptr;
    if (port != 0 && std::string_view{end} == ".pass")
      ports.push_back(port);
  }
  return ports;
}

void write_pass(const std::string& path, const run_pass& pass) {
  ::unlink(path.c_str()); // left by a run that was killed
  const descriptor file{::open(
    path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file || !whole(::write, file.get(), pass.knock)
      || !whole(::write, file.get(), pass.answer))
    throw error(errc::io_failure, "cannot write the pass of the run: " + path
                                    + ": " + reason_of(errno));
}

run_pass read_pass(const std::string& path) {
  const descriptor file{
    ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  if (!file)
    throw error(errc::peer_failure,
                "no pass of the run, which process 0 writes: " + path + ": "
                  + reason_of(errno));
  run_pass pass;
  if (!whole(::read, file.get(), pass.knock)
      || !whole(::read, file.get(), pass.answer))
    throw error(errc::peer_failure,
                "the pass of the run is cut short: " + path);
  return pass;
}

} // namespace troupe::actors
