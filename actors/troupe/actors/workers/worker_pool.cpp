// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/workers/worker_pool.hpp>

#include <troupe/actors/host.hpp>
#include <troupe/actors/workers/queue_policy.hpp>
#include <troupe/actors/workers/running_jobs.hpp>
#include <troupe/base/assert.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace troupe::actors {

namespace {

/// Counts the workers of an actor system that are lent to all its executors
/// together.
class lent_workers final : public actor_base {
public:
  using actor_base::actor_base;
  const char* name() const override { return "troupe.lent_workers"; }

  /// Takes one more worker unless `most` are already lent.
  bool take(std::size_t most) noexcept {
    auto count = count_.load(std::memory_order_relaxed);
    while (count < most)
      if (count_.compare_exchange_weak(count, count + 1,
                                       std::memory_order_relaxed))
        return true;
    return false;
  }
  void give_back() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }

private:
  bool on_message(caf::mailbox_element&, context) override { return false; }

  // relaxed, because it guards no other data
  std::atomic<std::size_t> count_{0};
};

/// The counter of `sys`. Executors do not know each other, so the first one
/// puts the counter into the system's registry.
caf::strong_actor_ptr lent_workers_of(caf::actor_system& sys) {
  constexpr std::string_view key = "troupelent";
  if (!find_named(sys, key))
    put_named(sys, key, make<lent_workers>(sys)); // keeps an existing entry
  return find_named(sys, key);
}

} // namespace

struct worker_pool::state {
  explicit state(caf::actor_system& sys) : system(sys) {
    if (const auto own = policy_queue_of(sys); own.queue) {
      queue = own.queue;
      sharers = own.pools;
      sharers->fetch_add(1, std::memory_order_relaxed);
      return;
    }
    borrowed =
      std::make_unique<job_queue>(std::max<std::size_t>(1, workers_of(sys)));
    queue = borrowed.get();
    called.resize(helper_slot());
    lent = lent_workers_of(sys);
  }

  ~state() {
    if (sharers)
      sharers->fetch_sub(1, std::memory_order_relaxed);
  }

  std::size_t helper_slot() const { return queue->workers() - 1; }

  /// Takes a seat for a thread that waits for a step.
  std::size_t borrow() const noexcept {
    if (borrowed)
      return queue->borrow(helper_slot());
    const auto alone = sharers->load(std::memory_order_relaxed) == 1;
    return alone ? queue->borrow() : job_queue::no_seat;
  }

  /// Takes a worker of the system if at least one other remains for its own
  /// actors.
  bool take_worker() {
    return object_of<lent_workers>(lent).take(helper_slot());
  }
  void give_worker_back() { object_of<lent_workers>(lent).give_back(); }

  caf::actor_system& system;
  job_queue* queue = nullptr;
  std::unique_ptr<job_queue> borrowed; // null under Troupe's policy
  caf::strong_actor_ptr lent;          // the system's lent_workers
  // Pools of the policy's queue; null otherwise. Relaxed: a hint.
  std::atomic<int>* sharers = nullptr;
  std::mutex mutex;        // guards the rest
  std::size_t steps = 0;   // steps that have begun and not ended
  std::size_t serving = 0; // running drainers
  // by slot: true if a drainer waits for CAF to run it
  std::vector<bool> called;
};

namespace {

// CAF's queues order accesses to the objects that pass through them.
// ThreadSanitizer cannot see this, because CAF is not built with it.
void goes_to_caf([[maybe_unused]] void* what) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(what);
#endif
}
void comes_from_caf([[maybe_unused]] void* what) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(what);
#endif
}

/// Keeps one CAF worker in Troupe's queue until the queue is stopped.
template <class State>
class drainer final : public worker_task {
public:
  drainer(std::shared_ptr<State> pool, std::size_t slot)
    : pool_(std::move(pool)), slot_(slot) {}

  void run() override {
    comes_from_caf(this);
    {
      std::lock_guard guard{pool_->mutex};
      pool_->called[slot_] = false;
      ++pool_->serving;
    }
    {
      const running_jobs here_now{pool_->system};
      worker here{*pool_->queue, slot_};
      while (auto* j = pool_->queue->wait(slot_).work)
        here.run_chain(*j);
      pool_->queue->leave(slot_);
    }
    pool_->give_worker_back();
    std::lock_guard guard{pool_->mutex};
    --pool_->serving;
  }

private:
  std::shared_ptr<State> pool_;
  std::size_t slot_;
};

} // namespace

worker_pool::worker_pool(caf::actor_system& sys)
  : state_(std::make_shared<state>(sys)) {}

worker_pool::~worker_pool() = default;

caf::actor_system& worker_pool::system() noexcept {
  return state_->system;
}

job_queue& worker_pool::queue() noexcept {
  return *state_->queue;
}

bool worker_pool::own_policy() const noexcept {
  return !state_->borrowed;
}

void worker_pool::begin_step() {
  if (own_policy())
    return;
  auto& s = *state_;
  std::vector<std::size_t> idle;
  for (;;) {
    std::unique_lock guard{s.mutex};
    if (s.steps > 0) {
      ++s.steps;
      return;
    }
    // Drainers of earlier steps may still be leaving, and a slot must not be
    // served twice. Drainers that CAF has not run yet will serve this step;
    // waiting for them could take forever.
    if (s.serving == 0) {
      s.steps = 1;
      s.queue->restart();
      for (std::size_t slot = 0; slot < s.helper_slot(); ++slot)
        if (!s.called[slot] && s.take_worker()) {
          s.called[slot] = true;
          idle.push_back(slot);
        }
      break;
    }
    guard.unlock();
    std::this_thread::yield();
  }
  for (auto slot : idle) {
    auto* made = new drainer<state>(state_, slot);
    goes_to_caf(made);
    run_on_worker(s.system, made);
  }
}

void worker_pool::end_step() noexcept {
  if (own_policy())
    return;
  std::lock_guard guard{state_->mutex};
  TROUPE_ASSERT(state_->steps > 0);
  if (--state_->steps == 0)
    state_->queue->stop();
}

std::size_t worker_pool::borrow_seat() const noexcept {
  return state_->borrow();
}

} // namespace troupe::actors
