// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/backend/cpu_lowering.hpp>
#include <troupe/kernels/sim/sim_device.hpp>

#include <memory>
#include <utility>

namespace troupe {

namespace {

class sim_backend_type final : public backend {
public:
  device_kind kind() const noexcept override { return device_kind::sim; }
  std::unique_ptr<device> make_device(int index,
                                      const device_options&) const override {
    return make_sim_device({device_kind::sim, index});
  }
  kernel_table kernels(const kernel_options& options) const override {
    return cpu_backend().kernels(options).for_kind(device_kind::sim);
  }
  // Each simulates a device with its own memory.
  bool shares_memory() const noexcept override { return false; }
  graph::lowering_options lowering(const graph::lowering_options& wanted,
                                   const kernel_table& kernels) const override {
    return actors::cpu_lowering(wanted, kernels, kind());
  }
  std::shared_ptr<const graph::program>
  lowered(std::shared_ptr<const graph::program> p,
          const graph::lowering_options& possible) const override {
    return actors::cpu_lowered(std::move(p), possible);
  }
  std::shared_ptr<const layout> find_layout(std::string_view name,
                                            const shape& dims) const override {
    return cpu_backend().find_layout(name, dims);
  }
  void prepare(std::size_t threads) const override {
    cpu_backend().prepare(threads);
  }
};

} // namespace

const backend& sim_backend() {
  static const sim_backend_type it;
  return it;
}

} // namespace troupe
