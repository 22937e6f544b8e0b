// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace troupe::cuda {

/// Memory of a GPU. The marks of its blocks are positions of streams.
class gpu_memory : public memory_source {
public:
  explicit gpu_memory(std::shared_ptr<device_state> of);

  std::byte* allocate(std::size_t bytes) noexcept override;
  void deallocate(std::byte* data, std::size_t bytes) noexcept override;
  std::string limit() const override;
  bool is_host() const noexcept override { return false; }

  bool is_ordered() const noexcept override { return true; }
  reuse_mark returned() noexcept override;
  void reuse(const reuse_mark& mark) override;

private:
  std::shared_ptr<device_state> state_;
};

} // namespace troupe::cuda
