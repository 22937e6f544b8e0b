// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/files/input_file.hpp>

#include <troupe/base/error.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {

namespace {

[[noreturn]] void fail_open(const std::filesystem::path& path, int code) {
  auto kind =
    code == ENOENT || code == ENOTDIR ? errc::not_found : errc::io_failure;
  throw error(kind, path.string() + ": " + std::strerror(code));
}

std::uint64_t regular_size(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    fail_open(path, errno);
  if (!S_ISREG(info.st_mode))
    throw error(errc::bad_file, path.string() + ": not a regular file");
  return static_cast<std::uint64_t>(info.st_size);
}

} // namespace

input_file::input_file(std::filesystem::path path)
  : path_(std::move(path)), size_(regular_size(path_)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0)
    fail_open(path_, errno);
}

input_file::~input_file() {
  ::close(descriptor_);
}

void input_file::require(std::uint64_t bytes, const char* what) const {
  if (bytes > remaining())
    throw error(errc::bad_file, path_.string() + ": too short: " + what
                                  + " needs " + std::to_string(bytes)
                                  + " bytes at byte "
                                  + std::to_string(position_) + " but only "
                                  + std::to_string(remaining()) + " remain");
}

void input_file::read(void* target, std::size_t bytes, const char* what) {
  require(bytes, what);
  auto* to = static_cast<char*>(target);
  while (bytes > 0) {
    auto got = ::read(descriptor_, to, bytes);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw error(errc::io_failure,
                  path_.string() + ": " + std::strerror(errno));
    if (got == 0)
      throw error(errc::bad_file, path_.string()
                                    + ": became shorter while "
                                      "it was read");
    to += got;
    bytes -= static_cast<std::size_t>(got);
    position_ += static_cast<std::uint64_t>(got);
  }
}

std::string input_file::read_string(std::uint64_t bytes, const char* what) {
  require(bytes, what);
  std::string result(bytes, '\0');
  read(result.data(), result.size(), what);
  return result;
}

std::filesystem::file_type input_type(const std::filesystem::path& path) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (!std::filesystem::status_known(status))
    throw error(errc::io_failure, path.string() + ": " + failure.message());
  std::error_code ignored;
  if (status.type() == std::filesystem::file_type::not_found
      && std::filesystem::is_symlink(path, ignored))
    throw error(errc::not_found, path.string() + ": the link leads nowhere: "
                                   + std::strerror(ENOENT));
  return status.type();
}

std::string read_whole_file(const std::filesystem::path& path,
                            std::uint64_t limit) {
  input_file file(path);
  if (file.size() > limit)
    throw error(errc::bad_file, path.string() + ": has "
                                  + std::to_string(file.size())
                                  + " bytes, more than the "
                                  + std::to_string(limit) + " allowed here");
  return file.read_string(file.size());
}

} // namespace troupe
