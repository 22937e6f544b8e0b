// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace troupe {

/// Pages of host memory, followed by reserved addresses, so that they can grow
/// without moving. Uses huge pages if the system has them. Thread rule: one
/// thread at a time.
class address_range {
public:
  /// Reserves as many addresses as the machine has memory, or fewer if the
  /// process has a limit, but at least `bytes`. None of it is usable yet.
  /// `data()` is null if the system refuses.
  explicit address_range(std::size_t bytes) noexcept;
  ~address_range();
  address_range(const address_range&) = delete;
  address_range& operator=(const address_range&) = delete;

  /// Aligned to a huge page.
  std::byte* data() const noexcept { return data_; }

  /// Makes the first `bytes` bytes usable and returns the rest to the system.
  /// False: `bytes` cannot be made usable, and nothing has changed.
  bool resize(std::size_t bytes) noexcept;

private:
  bool reserve(std::size_t bytes) noexcept;

  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::size_t addresses_ = 0;
  std::size_t usable_ = 0;
};

} // namespace troupe
