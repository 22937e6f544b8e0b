// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace troupe {

/// Pages of host memory with free addresses behind them, so that they can
/// become more without moving. In huge pages where the system has them.
/// Thread rule: one thread at a time.
class address_range {
public:
  /// Reserves as many addresses as the machine has memory, or what comes close
  /// to that under the process's limit, but at least `bytes`; none of it is
  /// usable yet. `data()` is null if the system refuses.
  explicit address_range(std::size_t bytes) noexcept;
  ~address_range();
  address_range(const address_range&) = delete;
  address_range& operator=(const address_range&) = delete;

  /// At the border of a huge page.
  std::byte* data() const noexcept { return data_; }

  /// Makes the first `bytes` bytes usable and gives what is behind them back to
  /// the system. False: there are not so many; nothing has changed.
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
