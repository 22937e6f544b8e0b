// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/backend/cpu_lowering.hpp>
#include <troupe/comm/cuda/cuda_group.hpp>
#include <troupe/kernels/cuda/cuda_device.hpp>
#include <troupe/kernels/cuda/cuda_kernels.hpp>
#include <troupe/kernels/cuda/cuda_module.hpp>

#include <memory>

namespace troupe {

namespace {

/// Only making a device loads the module with the driver. Programs can
/// therefore be checked and graphs be built on machines without it.
class cuda_backend_type final : public backend {
public:
  device_kind kind() const noexcept override { return device_kind::cuda; }
  std::unique_ptr<device>
  make_device(int index, const device_options& options) const override {
    return cuda::make_cuda_device(cuda::loaded_driver(),
                                  {device_kind::cuda, index}, options);
  }
  kernel_table kernels(const kernel_options& options) const override {
    return cuda::cuda_kernels(options.factors);
  }
  bool shares_memory() const noexcept override { return false; }
  std::vector<std::unique_ptr<comm::communicator>>
  make_group(std::span<device* const> ranks,
             const comm::local_group_options&) const override {
    return comm::make_cuda_group(ranks);
  }
  graph::lowering_options lowering(const graph::lowering_options& wanted,
                                   const kernel_table& kernels) const override {
    auto possible = actors::cpu_lowering(wanted, kernels, kind());
    possible.kernel_layouts = false;
    possible.gradient_stream = wanted.gradient_stream;
    return possible;
  }
};

} // namespace

const backend& cuda_backend() {
  static const cuda_backend_type it;
  return it;
}

} // namespace troupe
