// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/device.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace troupe::test {

/// A device that stores all bytes inverted, in memory that it declares as its
/// own. Host code that reads this memory without a copy gets wrong values. The
/// device has no kernels.
class veiled_device final : public device {
public:
  device_id id() const noexcept override { return {device_kind::sim, 0}; }
  arena& memory() noexcept override { return memory_; }
  std::unique_ptr<stream> make_stream(const stream_options& options) override {
    return cpu_->make_stream(options);
  }
  tensor to_host(const tensor& value, arena& host, stream&) override {
    return inverted(value, host);
  }
  tensor to_device(const tensor& host_value, stream&) override {
    return inverted(host_value, memory_);
  }

private:
  class own_memory final : public memory_source {
  public:
    std::byte* allocate(std::size_t bytes) noexcept override {
      return host_->allocate(bytes);
    }
    void deallocate(std::byte* data, std::size_t bytes) noexcept override {
      host_->deallocate(data, bytes);
    }
    bool is_host() const noexcept override { return false; }

  private:
    std::unique_ptr<memory_source> host_ = make_host_memory_source();
  };

  static tensor inverted(const tensor& value, arena& memory) {
    auto copy = clone(value, memory);
    std::transform(copy.raw(), copy.raw() + copy.bytes(), copy.raw(),
                   [](std::byte b) { return ~b; });
    return copy;
  }

  std::unique_ptr<device> cpu_ = make_cpu_device(0);
  arena memory_{std::make_unique<own_memory>()};
};

} // namespace troupe::test
