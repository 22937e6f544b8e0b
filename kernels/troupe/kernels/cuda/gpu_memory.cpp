// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/gpu_memory.hpp>

#include <troupe/kernels/memory/used_by_several.hpp>

#include <utility>

namespace troupe::cuda {

gpu_memory::gpu_memory(std::shared_ptr<device_state> of)
  : state_(std::move(of)) {}

std::byte* gpu_memory::allocate(std::size_t bytes) noexcept {
  return state_->api->allocate(state_->gpu, bytes);
}

void gpu_memory::deallocate(std::byte* data, std::size_t) noexcept {
  state_->api->deallocate(state_->gpu, data);
}

std::string gpu_memory::limit() const {
  return to_string(state_->id);
}

// The work that returns memory has no position yet: it gets a later one than
// all that are given out. The host returns memory at any time.
reuse_mark gpu_memory::returned() noexcept {
  const auto now = state_->last_position.load(std::memory_order_relaxed);
  const auto* const on = cuda_stream::current();
  if (!on || &on->state() != state_.get())
    return {reuse_mark::several, now};
  return {used_by_several::now() ? reuse_mark::several : on->number(), now + 1};
}

void gpu_memory::reuse(const reuse_mark& mark) {
  state_->wait_for(mark);
}

} // namespace troupe::cuda
