// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/op_times.hpp>

#include <troupe/base/clock.hpp>

#include <algorithm>

namespace troupe::apps {

namespace {

class timed_kernel final : public kernel {
public:
  timed_kernel(std::unique_ptr<kernel> timed, std::atomic<std::uint64_t>& ns)
    : timed_(std::move(timed)), ns_(ns) {}

  void run(kernel_context& ctx) override {
    const auto begin = now_ns();
    timed_->run(ctx);
    ns_.fetch_add(now_ns() - begin, std::memory_order_relaxed);
  }

private:
  std::unique_ptr<kernel> timed_;
  std::atomic<std::uint64_t>& ns_;
};

} // namespace

std::shared_ptr<const kernel_table> op_times::wrapped(const kernel_table& fast,
                                                      device_kind kind) {
  const auto inner = std::make_shared<const kernel_table>(fast);
  auto all = std::make_shared<kernel_table>(fast);
  for (const auto& type : inner->op_types(kind))
    all->add(type, kind,
             kernel_maker{[this, inner, type, kind](const attribute_map& a) {
               return std::make_unique<timed_kernel>(inner->make(type, kind, a),
                                                     counter_of(type).ns);
             }});
  return all;
}

op_times::counter& op_times::counter_of(const std::string& type) {
  std::lock_guard guard{mutex_};
  const auto found = std::ranges::find(counters_, type, &counter::type);
  return found != counters_.end() ? *found : counters_.emplace_back(type);
}

std::vector<std::string> op_times::types() const {
  std::lock_guard guard{mutex_};
  std::vector<std::string> all;
  for (auto& c : counters_)
    all.push_back(c.type);
  return all;
}

std::vector<std::uint64_t> op_times::totals() const {
  std::lock_guard guard{mutex_};
  std::vector<std::uint64_t> all;
  for (auto& c : counters_)
    all.push_back(c.ns.load(std::memory_order_relaxed));
  return all;
}

} // namespace troupe::apps
