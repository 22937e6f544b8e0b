// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/delays/slow_ops.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/apps/delays/delay_table.hpp>
#include <troupe/apps/stragglers/op_times.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace troupe::apps {

namespace {

class slow_kernel final : public kernel {
public:
  slow_kernel(std::unique_ptr<kernel> whole, std::string type,
              std::shared_ptr<const delay_table> delays)
    : whole_(std::move(whole)), type_(std::move(type)),
      delays_(std::move(delays)) {}

  void run(kernel_context& ctx) override {
    if (!delay_) // only a run says which op this is
      delay_ = delays_->of(type_, key_of(type_, ctx.outputs().slots()).output);
    const auto begin = thread_use::now().ran_ns;
    whole_->run(ctx);
    if (delay_->factor > 1)
      compute_on(begin);
    if (delay_->ns > 0)
      std::this_thread::sleep_for(std::chrono::nanoseconds(delay_->ns));
  }

private:
  /// Keeps the core busy, as a slower one would be.
  void compute_on(std::uint64_t begin) const {
    const auto ran = static_cast<double>(thread_use::now().ran_ns - begin);
    const auto end = begin + static_cast<std::uint64_t>(ran * delay_->factor);
    while (thread_use::now().ran_ns < end) {
    }
  }

  std::unique_ptr<kernel> whole_;
  std::string type_;
  std::shared_ptr<const delay_table> delays_;
  std::optional<delay> delay_;
};

/// The types that have an op with a delay.
std::set<std::string, std::less<>>
slow_types(const delay_table& delays, const kernel_table& all, device_kind kind,
           const std::map<std::string, std::string, std::less<>>& outputs) {
  std::set<std::string, std::less<>> types;
  for (const auto& type : all.op_types(kind))
    if (!delays.of(type).is_none())
      types.insert(type);
  for (const auto& name : delays.names())
    if (const auto of = outputs.find(name); of != outputs.end())
      types.insert(of->second);
  return types;
}

} // namespace

void slow_down(executor_options& options, const graph::program& program,
               const std::vector<std::string>& slow) {
  if (slow.empty())
    return;
  const auto delays = std::make_shared<const delay_table>(
    delay_table::read(slow, delay_table::grammar::names, "--slow"));
  const auto outputs = op_outputs_of(program);
  delays->require_known(op_types_of(program), outputs);
  const auto fast = std::make_shared<const kernel_table>(
    options.kernels ? *options.kernels : kernels_for(options.devices));
  auto all = std::make_shared<kernel_table>(*fast);
  const auto kind = options.devices.front().kind;
  for (const auto& type : slow_types(*delays, *fast, kind, outputs))
    if (fast->has(type, kind))
      all->add(type, kind,
               kernel_maker{[fast, type, kind, delays](const attribute_map& a) {
                 return std::make_unique<slow_kernel>(fast->make(type, kind, a),
                                                      type, delays);
               }});
  options.kernels = std::move(all);
}

} // namespace troupe::apps
