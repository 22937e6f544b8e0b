// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>

#include <atomic>
#include <cstdint>

namespace troupe::test {

/// What a `limited_source` has done; outlives it.
struct source_record {
  std::atomic<int> allocations{0};
  std::atomic<std::size_t> outstanding{0}; ///< bytes
  std::atomic<bool> destroyed{false};
};

/// Host memory that is used up after `limit` bytes.
class limited_source final : public memory_source {
public:
  explicit limited_source(source_record& record, std::size_t limit = SIZE_MAX)
    : record_(record), limit_(limit) {}
  ~limited_source() override { record_.destroyed = true; }

  std::byte* allocate(std::size_t bytes) noexcept override {
    if (record_.outstanding.fetch_add(bytes) + bytes > limit_) {
      record_.outstanding -= bytes;
      return nullptr;
    }
    ++record_.allocations;
    return host_->allocate(bytes);
  }

  void deallocate(std::byte* data, std::size_t bytes) noexcept override {
    record_.outstanding -= bytes;
    host_->deallocate(data, bytes);
  }

private:
  source_record& record_;
  std::size_t limit_;
  std::unique_ptr<memory_source> host_ = make_host_memory_source();
};

} // namespace troupe::test
