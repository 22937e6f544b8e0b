// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/cuda_device.hpp>

#include <troupe/base/assert.hpp>
#include <troupe/base/error.hpp>
#include <troupe/kernels/cuda/cuda_recording.hpp>
#include <troupe/kernels/cuda/gpu_memory.hpp>

#include <cstring>
#include <string>
#include <utility>

namespace troupe::cuda {

namespace {

/// Host memory that GPUs reach.
class pinned_memory final : public memory_source {
public:
  explicit pinned_memory(std::shared_ptr<driver> api) : api_(std::move(api)) {}

  std::byte* allocate(std::size_t bytes) noexcept override {
    return api_->allocate_pinned(bytes);
  }
  void deallocate(std::byte* data, std::size_t) noexcept override {
    api_->deallocate_pinned(data);
  }
  std::string limit() const override { return "pinned host memory"; }

private:
  std::shared_ptr<driver> api_;
};

std::shared_ptr<device_state> make_state(std::shared_ptr<driver> api,
                                         device_id id,
                                         const device_options& options,
                                         int gpu) {
  if (gpu < 0 || gpu >= api->gpus())
    throw error(errc::not_found,
                "no GPU " + std::to_string(gpu) + ": the machine has "
                  + std::to_string(api->gpus()),
                {.device = to_string(id)});
  auto made = std::make_shared<device_state>();
  made->api = std::move(api);
  made->gpu = gpu;
  made->id = id;
  made->options = options;
  return made;
}

class cuda_device final : public device {
public:
  explicit cuda_device(std::shared_ptr<device_state> state)
    : state_(std::move(state)), memory_(std::make_unique<gpu_memory>(state_)),
      pinned_(std::make_unique<pinned_memory>(state_->api)),
      fault_(pinned_.allocate(sizeof(fault_report))) {
    state_->fault = new (fault_.data()) fault_report;
  }

  device_state& state() const noexcept { return *state_; }
  device_id id() const noexcept override { return state_->id; }
  // Recorded work must not take memory that others get later.
  arena& memory() noexcept override {
    const auto* const on = cuda_stream::current();
    auto* const records =
      on && &on->state() == state_.get() ? on->recording() : nullptr;
    return records ? records->memory() : memory_;
  }
  std::unique_ptr<stream> make_stream(const stream_options& options) override {
    return std::make_unique<cuda_stream>(state_, options);
  }

  tensor to_host(const tensor& value, arena& host, stream& on) override {
    if (!value)
      return {};
    auto& queue = stream_of(&on);
    auto copied = tensor::make(host, value.dims(), value.type());
    copied.set_levels(value.levels());
    if (auto* const records = queue.recording()) {
      auto source = tensor::make(records->memory(), value.dims(), value.type());
      if (const auto bytes = value.bytes())
        queue.copy(source.raw(), value.raw(), bytes);
      records->note_source(copied, std::move(source));
    } else if (const auto bytes = value.bytes()) {
      auto staging = pinned_.allocate(bytes);
      queue.copy(staging.data(), value.raw(), bytes);
      queue.finish_later({std::move(staging), copied});
    }
    return copied;
  }

  tensor to_device(const tensor& host_value, stream& on) override {
    if (!host_value)
      return {};
    auto& queue = stream_of(&on);
    const cuda_stream::scope here{queue};
    auto copied = tensor::make(memory(), host_value.dims(), host_value.type());
    copied.set_levels(host_value.levels());
    if (const auto bytes = host_value.bytes()) {
      auto staging = pinned_.allocate(bytes);
      std::memcpy(staging.data(), host_value.raw(), bytes);
      queue.copy(copied.raw(), staging.data(), bytes);
      queue.keep(std::move(staging));
    }
    return copied;
  }

  bool can_record() const noexcept override { return true; }
  // The memory of earlier steps would otherwise be there twice.
  std::unique_ptr<step_recording>
  record(std::span<stream* const> streams) override {
    memory_.trim();
    return std::make_unique<cuda_recording>(state_, streams, pinned_);
  }

private:
  std::shared_ptr<device_state> state_;
  arena memory_;
  arena pinned_;
  buffer fault_;
};

} // namespace

std::unique_ptr<device> make_cuda_device(std::shared_ptr<driver> api,
                                         device_id id,
                                         const device_options& options) {
  return make_cuda_device(std::move(api), id, options, id.index);
}

std::unique_ptr<device> make_cuda_device(std::shared_ptr<driver> api,
                                         device_id id,
                                         const device_options& options,
                                         int gpu) {
  return std::make_unique<cuda_device>(
    make_state(std::move(api), id, options, gpu));
}

device_state& state_of(const device& d) {
  TROUPE_ASSERT(d.id().kind == device_kind::cuda);
  return static_cast<const cuda_device&>(d).state();
}

} // namespace troupe::cuda
