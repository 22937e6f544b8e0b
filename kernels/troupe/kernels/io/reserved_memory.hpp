// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>

namespace troupe {

/// Counts memory that a reader of a file holds beside tensors towards
/// `host_memory_limit`. Gives it back when it is destroyed.
///
/// Thread rule: one thread.
class reserved_memory {
public:
  explicit reserved_memory(const std::filesystem::path& file) : file_(file) {}
  ~reserved_memory();
  reserved_memory(const reserved_memory&) = delete;
  reserved_memory& operator=(const reserved_memory&) = delete;

  /// Holds `bytes` from now on. Throws error(out_of_memory), naming the file,
  /// if the limit does not allow it; nothing has changed then.
  void hold(std::size_t bytes);

private:
  const std::filesystem::path& file_;
  std::size_t held_ = 0;
};

} // namespace troupe
