// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::test {

/// The folder to which tests write. It is in memory if the system has such a
/// folder, because some tests write thousands of small files.
inline std::filesystem::path scratch_root() {
  std::filesystem::path shared_memory = "/dev/shm";
  return ::access(shared_memory.c_str(), W_OK) == 0
           ? shared_memory
           : std::filesystem::temp_directory_path();
}

/// A new folder that is removed with all its contents.
class temporary_folder {
public:
  temporary_folder() {
    auto name = (scratch_root() / "troupe_test_XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }
  /// Number of files and folders directly in it.
  std::ptrdiff_t entries() const {
    std::filesystem::directory_iterator first(path_);
    return std::distance(first, std::filesystem::directory_iterator());
  }

private:
  std::filesystem::path path_;
};

/// While it exists, this process cannot write files beyond `bytes` bytes. To a
/// program this looks like a full disk, with another error number.
class file_size_limit {
public:
  explicit file_size_limit(rlim_t bytes)
    : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~file_size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  file_size_limit(const file_size_limit&) = delete;
  file_size_limit& operator=(const file_size_limit&) = delete;

private:
  rlimit before_{};
  void (*handler_)(int);
};

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path,
                        const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush())
    throw std::runtime_error("cannot write " + path.string());
}

/// "bad_file: message" for a troupe::error that `action` throws, "none" if it
/// throws nothing. Other exceptions are not caught.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const troupe::error& failure) {
    return std::string(to_string(failure.code())) + ": " + failure.message();
  }
  return "none";
}

/// True if `action` succeeds or throws a troupe::error of one line. Readers
/// must do so for any contents of a file.
template <class Action>
bool survives(Action&& action) {
  try {
    action();
    return true;
  } catch (const troupe::error& failure) {
    return failure.message().find('\n') == std::string::npos;
  }
}

/// Permissions of a file or folder, including the special ones.
inline mode_t permissions_of(const std::filesystem::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0)
    throw std::runtime_error("cannot look at " + path.string());
  return status.st_mode & 07777;
}

/// Replaces all occurrences.
inline std::string replaced(std::string text, const std::string& from,
                            const std::string& to) {
  for (auto at = text.find(from); at != text.npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace troupe::test
