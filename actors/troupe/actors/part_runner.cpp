// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/part_runner.hpp>

#include <algorithm>
#include <thread>

namespace troupe::actors {

/// A request for help in the queue. Pushed again only after it has run.
class part_runner::helper : public job {
public:
  explicit helper(part_runner& owner) : owner_(owner) {}

  void ask() {
    if (!queued_.exchange(true, std::memory_order_acq_rel))
      owner_.queue_.push(*this, job_priority::high);
  }

  void run(worker&) override {
    if ((owner_.gate_.fetch_add(1, std::memory_order_acq_rel) & closed) == 0)
      owner_.take_parts();
    owner_.gate_.fetch_sub(1, std::memory_order_release);
    queued_.store(false, std::memory_order_release);
  }

  bool queued() const noexcept {
    return queued_.load(std::memory_order_acquire);
  }

private:
  part_runner& owner_;
  std::atomic<bool> queued_{false};
};

part_runner::part_runner(job_queue& queue) : queue_(queue) {
  for (std::size_t i = 1; i < queue.workers(); ++i)
    helpers_.push_back(std::make_unique<helper>(*this));
}

part_runner::~part_runner() {
  while (!idle())
    std::this_thread::yield();
}

bool part_runner::idle() const noexcept {
  return std::none_of(helpers_.begin(), helpers_.end(),
                      [](auto& h) { return h->queued(); });
}

void part_runner::run(std::size_t parts,
                      const std::function<void(std::size_t)>& part) {
  part_ = &part;
  parts_ = parts;
  done_.store(0, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
  gate_.fetch_and(~closed, std::memory_order_release);
  const auto wanted = std::min(helpers_.size(), parts > 0 ? parts - 1 : 0);
  for (std::size_t i = 0; i < wanted; ++i)
    helpers_[i]->ask();
  take_parts();
  while (done_.load(std::memory_order_acquire) < parts)
    std::this_thread::yield();
  gate_.fetch_or(closed, std::memory_order_acq_rel);
  while (gate_.load(std::memory_order_acquire) != closed)
    std::this_thread::yield();
}

void part_runner::take_parts() {
  for (;;) {
    const auto i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= parts_)
      return;
    (*part_)(i);
    done_.fetch_add(1, std::memory_order_release);
  }
}

} // namespace troupe::actors
