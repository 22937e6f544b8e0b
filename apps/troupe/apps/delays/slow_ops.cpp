// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/delays/slow_ops.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/apps/delays/delay_table.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

namespace troupe::apps {

namespace {

class slow_kernel final : public kernel {
public:
  slow_kernel(std::unique_ptr<kernel> whole, std::uint64_t ns)
    : whole_(std::move(whole)), ns_(ns) {}

  void run(kernel_context& ctx) override {
    whole_->run(ctx);
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns_));
  }

private:
  std::unique_ptr<kernel> whole_;
  std::uint64_t ns_;
};

} // namespace

void slow_down(executor_options& options, const graph::program& program,
               const std::vector<std::string>& slow) {
  if (slow.empty())
    return;
  const auto delays = delay_table::read(slow, "--slow");
  delays.require_known(op_types_of(program));
  const auto fast = std::make_shared<const kernel_table>(
    options.kernels ? *options.kernels : kernels_for(options.devices));
  auto all = std::make_shared<kernel_table>(*fast);
  const auto kind = options.devices.front().kind;
  for (const auto& type : fast->op_types(kind))
    if (const auto ns = delays.of(type); ns > 0)
      all->add(type, kind,
               kernel_maker{[fast, type, kind, ns](const attribute_map& a) {
                 return std::make_unique<slow_kernel>(fast->make(type, kind, a),
                                                      ns);
               }});
  options.kernels = std::move(all);
}

} // namespace troupe::apps
