// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <cstddef>
#include <filesystem>
#include <string>

namespace troupe {

/// Counts memory that a file reader holds besides tensors towards
/// `host_memory_limit`. The destructor returns it.
///
/// Thread rule: one thread.
class reserved_memory {
public:
  explicit reserved_memory(const std::filesystem::path& file) : file_(file) {}
  ~reserved_memory();
  reserved_memory(const reserved_memory&) = delete;
  reserved_memory& operator=(const reserved_memory&) = delete;

  /// Sets the number of bytes held. Throws error(out_of_memory), naming the
  /// file, if the limit does not allow it; then nothing has changed.
  void hold(std::size_t bytes);

private:
  const std::filesystem::path& file_;
  std::size_t held_ = 0;
};

/// Returns what `read` returns. An error(out_of_memory) of it gets `name`, a
/// file or a part of one, in front, unless it begins with that.
template <class Read>
auto naming_file(const std::string& name, Read&& read) {
  try {
    return read();
  } catch (const error& e) {
    if (e.code() != errc::out_of_memory || e.message().starts_with(name))
      throw;
    throw error(e.code(), name + ": " + e.message(), e.where());
  }
}

} // namespace troupe
