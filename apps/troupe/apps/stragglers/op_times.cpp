// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/stragglers/op_times.hpp>

#include <troupe/base/clock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>

#include <sys/resource.h>
#include <time.h>

namespace troupe::apps {

thread_use thread_use::now() {
  timespec ran{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  constexpr std::uint64_t ns_per_s = 1'000'000'000;
  return {now_ns(),
          static_cast<std::uint64_t>(ran.tv_sec) * ns_per_s
            + static_cast<std::uint64_t>(ran.tv_nsec),
          static_cast<std::uint64_t>(used.ru_nivcsw)};
}

std::optional<std::uint64_t> kernel_ns(const thread_use& begin,
                                       const thread_use& end, bool is_shared) {
  if (end.preemptions == begin.preemptions)
    return end.wall_ns - begin.wall_ns;
  if (is_shared)
    return std::nullopt;
  return end.ran_ns - begin.ran_ns;
}

/// The latest runs of one kernel: a ring that the kernel writes and `take`
/// reads. A run that is overwritten while it is read is read as the newer one.
class op_times::run_log {
public:
  explicit run_log(op_key of) : op_(std::move(of)) {}

  const op_key& op() const noexcept { return op_; }
  void add(std::uint64_t ns) {
    const auto run = runs_.load(std::memory_order_relaxed);
    ms_[run % ms_.size()].store(
      static_cast<float>(static_cast<double>(ns) / ns_per_ms),
      std::memory_order_relaxed);
    runs_.store(run + 1, std::memory_order_release);
  }
  /// One thread at a time.
  void take(std::vector<float>& all) {
    const auto end = runs_.load(std::memory_order_acquire);
    const auto count = std::min<std::uint64_t>(end - taken_, ms_.size());
    for (auto run = end - count; run < end; ++run)
      all.push_back(ms_[run % ms_.size()].load(std::memory_order_relaxed));
    taken_ = end;
  }

private:
  op_key op_;
  std::array<std::atomic<float>, 16> ms_{};
  std::atomic<std::uint64_t> runs_{0};
  std::uint64_t taken_ = 0; // used by `take` alone
};

class op_times::timed_kernel final : public kernel {
public:
  timed_kernel(std::shared_ptr<log_list> list, std::string type,
               std::unique_ptr<kernel> timed)
    : list_(std::move(list)), type_(std::move(type)), timed_(std::move(timed)) {
  }

  void run(kernel_context& ctx) override {
    if (!log_) // only a run says which op this is
      begin_log(key_of(type_, ctx.outputs().slots()));
    const auto ns = last_ns_ < least_ns ? by_clock(ctx) : by_use(ctx);
    if (!ns)
      return;
    last_ns_ = *ns;
    log_->add(*ns);
  }

private:
  void begin_log(op_key op) {
    log_ = std::make_shared<run_log>(std::move(op));
    std::lock_guard guard{list_->mutex};
    list_->logs.push_back(log_);
  }
  std::optional<std::uint64_t> by_clock(kernel_context& ctx) {
    const auto begin = now_ns();
    timed_->run(ctx);
    return now_ns() - begin;
  }
  std::optional<std::uint64_t> by_use(kernel_context& ctx) {
    const auto begin = thread_use::now();
    timed_->run(ctx);
    return kernel_ns(begin, thread_use::now(), ctx.workers() > 1);
  }

  std::shared_ptr<log_list> list_;
  std::string type_;
  std::unique_ptr<kernel> timed_;
  std::shared_ptr<run_log> log_;
  std::uint64_t last_ns_ = 0; // a handle never runs concurrently with itself
};

std::shared_ptr<const kernel_table> op_times::wrapped(const kernel_table& fast,
                                                      device_kind kind) {
  const auto inner = std::make_shared<const kernel_table>(fast);
  auto all = std::make_shared<kernel_table>(fast);
  for (const auto& type : inner->op_types(kind))
    all->add(
      type, kind,
      kernel_maker{[list = list_, inner, type, kind](const attribute_map& a) {
        return std::make_unique<timed_kernel>(list, type,
                                              inner->make(type, kind, a));
      }});
  return all;
}

std::map<op_key, std::vector<float>> op_times::take() {
  std::lock_guard guard{list_->mutex};
  std::erase_if(list_->logs, [](auto& log) { return log.expired(); });
  std::map<op_key, std::vector<float>> all;
  for (auto& each : list_->logs)
    if (const auto log = each.lock())
      log->take(all[log->op()]);
  return all;
}

} // namespace troupe::apps
