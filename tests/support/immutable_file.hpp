// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace troupe::test {

/// A file that nobody can remove, until the end. False if this user or the file
/// system cannot have one.
class immutable_file {
public:
  explicit immutable_file(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      is_(set(FS_IMMUTABLE_FL)) {}
  ~immutable_file() {
    set(0);
    ::close(descriptor_);
  }
  immutable_file(const immutable_file&) = delete;
  immutable_file& operator=(const immutable_file&) = delete;

  explicit operator bool() const noexcept { return is_; }

private:
  bool set(int flag) {
    int flags = 0;
    if (::ioctl(descriptor_, FS_IOC_GETFLAGS, &flags) != 0)
      return false;
    flags = (flags & ~FS_IMMUTABLE_FL) | flag;
    return ::ioctl(descriptor_, FS_IOC_SETFLAGS, &flags) == 0;
  }

  int descriptor_;
  bool is_;
};

} // namespace troupe::test
