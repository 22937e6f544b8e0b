// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace troupe::actors {

/// Memory for data that a graph's tasks read, laid out in the order in which it
/// is allocated. Freed with the graph. For objects without a destructor, or
/// whose owner calls it.
class task_memory {
public:
  /// The memory is aligned for pointers.
  void* allocate(std::size_t bytes) {
    constexpr auto alignment = alignof(void*);
    bytes = (bytes + alignment - 1) / alignment * alignment;
    if (bytes > left_)
      add_chunk(bytes);
    auto* place = next_;
    next_ += bytes;
    left_ -= bytes;
    return place;
  }

private:
  void add_chunk(std::size_t at_least) {
    constexpr std::size_t usual = 64 * 1024;
    left_ = at_least > usual ? at_least : usual;
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(left_));
    next_ = chunks_.back().get();
  }

  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

} // namespace troupe::actors
