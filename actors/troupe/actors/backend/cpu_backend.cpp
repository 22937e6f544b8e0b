// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/backend/cpu_lowering.hpp>
#include <troupe/kernels/cpu/layout/named_layouts.hpp>
#include <troupe/kernels/cpu/library/library_memory.hpp>
#include <troupe/kernels/kernel_options.hpp>

#include <memory>
#include <utility>

namespace troupe {

namespace {

class cpu_backend_type final : public backend {
public:
  device_kind kind() const noexcept override { return device_kind::cpu; }
  std::unique_ptr<device> make_device(int index,
                                      const device_options&) const override {
    return make_cpu_device(index);
  }
  kernel_table kernels(const kernel_options& options) const override {
    return cpu_kernels(options);
  }
  bool shares_memory() const noexcept override { return true; }
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
    return cpu::find_layout(name, dims);
  }
  void prepare(std::size_t threads) const override {
    take_library_memory(threads);
  }
};

} // namespace

const backend& cpu_backend() {
  static const cpu_backend_type it;
  return it;
}

} // namespace troupe
