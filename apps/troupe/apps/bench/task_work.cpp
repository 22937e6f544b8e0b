// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/bench/task_work.hpp>

namespace troupe::apps {

namespace {

std::uint32_t this_threads_number() noexcept {
  static std::atomic<std::uint32_t> threads{0};
  thread_local const auto number =
    threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

} // namespace

task_work::task_work(const task_graph& graph, std::int64_t grain, bool check)
  : graph_(graph), grain_(grain) {
  if (!check)
    return;
  stamps_ = std::make_unique<std::atomic<std::uint32_t>[]>(graph.tasks());
  threads_ = std::make_unique<std::atomic<std::uint32_t>[]>(graph.tasks());
}

void task_work::compute(std::int64_t rounds) noexcept {
  constexpr int lanes = 64;
  float x[lanes];
  for (int i = 0; i < lanes; ++i)
    x[i] = 1.0f + static_cast<float>(i);
  for (std::int64_t r = 0; r < rounds; ++r)
    for (float& v : x)
      v = v * 0.999999f + 0.000001f;
  for (float& v : x)
    asm volatile("" : : "m"(v)); // the result counts as used
}

void task_work::verify(std::uint32_t task) noexcept {
  const auto here = this_threads_number();
  std::uint64_t hops = 0;
  for (auto p : graph_.before(task)) {
    if (stamps_[p].load(std::memory_order_relaxed) != pass_)
      violations_.fetch_add(1, std::memory_order_relaxed);
    hops += threads_[p].load(std::memory_order_relaxed) != here;
  }
  threads_[task].store(here, std::memory_order_relaxed);
  stamps_[task].store(pass_, std::memory_order_relaxed);
  if (hops > 0)
    hops_.fetch_add(hops, std::memory_order_relaxed);
}

double task_work::hops_per_task() const noexcept {
  return static_cast<double>(hops_.load(std::memory_order_relaxed))
         / (static_cast<double>(pass_) * static_cast<double>(graph_.tasks()));
}

std::uint64_t task_work::violations() const noexcept {
  auto count = violations_.load(std::memory_order_relaxed);
  if (stamps_)
    for (std::size_t t = 0; t < graph_.tasks(); ++t)
      count += stamps_[t].load(std::memory_order_relaxed) != pass_;
  return count;
}

} // namespace troupe::apps
