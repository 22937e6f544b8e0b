// SPDX-License-Identifier: Apache-2.0
#include "fuzz/ops/bounded_device.hpp"

#include <atomic>
#include <cstdlib>

namespace troupe::fuzz {

namespace {

class bounded_source final : public memory_source {
public:
  explicit bounded_source(std::size_t bytes) : left_(bytes) {}

  std::byte* allocate(std::size_t bytes) noexcept override {
    constexpr std::size_t alignment = 64;
    const auto rounded = (bytes + alignment - 1) / alignment * alignment;
    if (left_ < rounded)
      return nullptr;
    left_ -= rounded;
    return static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  }

  void deallocate(std::byte* data, std::size_t bytes) noexcept override {
    left_ += (bytes + 63) / 64 * 64;
    std::free(data);
  }

private:
  std::atomic<std::size_t> left_;
};

class bounded_device final : public device {
public:
  explicit bounded_device(std::size_t bytes)
    : memory_(std::make_unique<bounded_source>(bytes)),
      streams_(make_cpu_device(0)) {}

  device_id id() const noexcept override { return {}; }
  arena& memory() noexcept override { return memory_; }
  std::unique_ptr<stream> make_stream(const stream_options& options) override {
    return streams_->make_stream(options);
  }
  tensor to_host(const tensor& value, arena& host, stream&) override {
    return clone(value, host);
  }
  tensor to_device(const tensor& host_value, stream&) override {
    return clone(host_value, memory_);
  }

private:
  arena memory_;
  std::unique_ptr<device> streams_;
};

} // namespace

std::shared_ptr<device> make_bounded_device(std::size_t bytes) {
  return std::make_shared<bounded_device>(bytes);
}

} // namespace troupe::fuzz
