// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/scheduling.hpp>

#include <troupe/actors/host.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/base/cores.hpp>

#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/ref_counted.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/coordinator.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace troupe {

namespace {

/// Which worker of a system with Troupe's policy this thread is.
struct worker_thread {
  job_queue* queue = nullptr; // null: none
  std::size_t index = 0;
  void* host = nullptr;
};
thread_local worker_thread this_thread;

void enqueue(job_queue& queue, caf::resumable* target) {
  queue.push_guest(target);
}

/// Scheduling policy for caf::scheduler::coordinator: jobs of Troupe run
/// inside `dequeue`, CAF's own resumables come out of it.
class policy {
public:
  struct coordinator_data {
    explicit coordinator_data(caf::scheduler::abstract_coordinator*) {}
    std::unique_ptr<job_queue> queue;
    std::atomic<int> pools{0}; // that share the queue
  };

  struct worker_data {
    // Constructed once by the coordinator when the number of workers is known,
    // before any of them starts; then copied into each.
    explicit worker_data(caf::scheduler::abstract_coordinator* parent) {
      auto& data =
        static_cast<caf::scheduler::coordinator<policy>*>(parent)->data();
      data.queue = std::make_unique<job_queue>(parent->num_workers());
    }
    bool begun = false;
  };

  template <class Coordinator>
  void central_enqueue(Coordinator* self, caf::resumable* target) {
    enqueue(*self->data().queue, target);
  }

  template <class Worker>
  void external_enqueue(Worker* self, caf::resumable* target) {
    enqueue(*self->parent()->data().queue, target);
  }

  template <class Worker>
  void internal_enqueue(Worker* self, caf::resumable* target) {
    enqueue(*self->parent()->data().queue, target);
  }

  template <class Worker>
  void resume_job_later(Worker* self, caf::resumable* target) {
    enqueue(*self->parent()->data().queue, target);
  }

  template <class Worker>
  caf::resumable* dequeue(Worker* self) {
    auto& queue = *self->parent()->data().queue;
    if (!std::exchange(self->data().begun, true)) {
      this_thread = {&queue, self->id(), self};
      if (take_all_cores(queue.workers()))
        pin_this_thread(self->id());
    }
    worker here{queue, self->id(), self};
    for (;;) {
      const auto found = queue.wait(self->id());
      if (found.guest)
        return static_cast<caf::resumable*>(found.guest);
      here.run_chain(*found.work);
    }
  }

  template <class Worker>
  void before_resume(Worker*, caf::resumable*) {}
  template <class Worker>
  void after_resume(Worker*, caf::resumable*) {}
  template <class Worker>
  void after_completion(Worker*, caf::resumable*) {}
  template <class Worker>
  void before_shutdown(Worker*) {}

  template <class Worker, class F>
  void foreach_resumable(Worker*, F) {}

  template <class Coordinator, class F>
  void foreach_central_resumable(Coordinator* self, F f) {
    // All workers have left. Executors are gone before their system, so what
    // waits here is CAF's.
    while (auto* guest = self->data().queue->pop_guest())
      f(static_cast<caf::resumable*>(guest));
  }
};

using coordinator = caf::scheduler::coordinator<policy>;

} // namespace

void configure(caf::actor_system_config& cfg, int threads) {
  const auto cores = static_cast<int>(usable_cores());
  const auto count = threads <= 0 ? cores : std::min(threads, cores);
  cfg.set("scheduler.max-threads", static_cast<std::size_t>(count));
  cfg.load<coordinator>();
}

namespace actors {

namespace {

/// Counts the workers of an actor system that its executors have been lent, all
/// of them together.
class lent_workers final : public actor_base {
public:
  using actor_base::actor_base;
  const char* name() const override { return "troupe.lent_workers"; }

  /// Takes one more unless there are `most` already.
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

  std::atomic<std::size_t> count_{0}; // guards nothing else, so relaxed
};

/// That of `sys`. Executors know nothing of each other; the registry of their
/// system knows the first one's counter.
caf::strong_actor_ptr lent_workers_of(caf::actor_system& sys) {
  const auto key = caf::atom("troupelent");
  if (!sys.registry().get(key))
    sys.registry().put(key, make<lent_workers>(sys)); // keeps what is there
  return sys.registry().get(key);
}

} // namespace

struct worker_pool::state {
  explicit state(caf::actor_system& sys) : system(sys) {
    if (auto* own = dynamic_cast<coordinator*>(&sys.scheduler())) {
      queue = own->data().queue.get();
      sharers = &own->data().pools;
      sharers->fetch_add(1, std::memory_order_relaxed);
      return;
    }
    borrowed = std::make_unique<job_queue>(
      std::max<std::size_t>(1, sys.scheduler().num_workers()));
    queue = borrowed.get();
    called.resize(helper_slot());
    lent = lent_workers_of(sys);
  }

  ~state() {
    if (sharers)
      sharers->fetch_sub(1, std::memory_order_relaxed);
  }

  std::size_t helper_slot() const { return queue->workers() - 1; }

  /// The seat for a thread that waits for a step.
  std::size_t borrow() const noexcept {
    if (borrowed)
      return queue->borrow(helper_slot());
    const auto alone = sharers->load(std::memory_order_relaxed) == 1;
    return alone ? queue->borrow() : job_queue::no_seat;
  }

  /// Takes a worker of the system if another one stays for its own actors.
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
  std::mutex mutex;         // guards the rest
  std::size_t steps = 0;    // begun and not ended
  std::size_t serving = 0;  // drainers that run
  std::vector<bool> called; // by slot: a drainer waits for CAF
};

namespace {

// CAF's queues order what goes through them, which ThreadSanitizer cannot see
// in a library that is not built with it.
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
class drainer : public caf::resumable, public caf::ref_counted {
public:
  drainer(std::shared_ptr<State> pool, std::size_t slot)
    : pool_(std::move(pool)), slot_(slot) {}

  subtype_t subtype() const override { return function_object; }

  resume_result resume(caf::execution_unit* host, std::size_t) override {
    comes_from_caf(this);
    {
      std::lock_guard guard{pool_->mutex};
      pool_->called[slot_] = false;
      ++pool_->serving;
    }
    {
      worker here{*pool_->queue, slot_, host};
      while (auto* j = pool_->queue->wait(slot_).work)
        here.run_chain(*j);
      pool_->queue->leave(slot_);
    }
    pool_->give_worker_back();
    std::lock_guard guard{pool_->mutex};
    --pool_->serving;
    return done;
  }

  void intrusive_ptr_add_ref_impl() override { ref(); }
  void intrusive_ptr_release_impl() override { deref(); }

private:
  std::shared_ptr<State> pool_;
  std::size_t slot_;
};

} // namespace

worker_pool::worker_pool(caf::actor_system& sys)
  : state_(std::make_shared<state>(sys)) {}

worker_pool::~worker_pool() = default;

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
    // Drainers of the steps before may still be on their way out; a slot must
    // not be served twice. Those that CAF has not run yet serve this step when
    // it does: waiting for them could take for ever.
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
    s.system.scheduler().enqueue(made);
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

// -- serving_thread -----------------------------------------------------------

serving_thread::serving_thread(worker_pool& pool)
  : pool_(pool), queue_(pool.queue()), is_worker_(this_thread.queue == &queue_),
    seat_(is_worker_ ? this_thread.index : job_queue::no_seat) {
  if (is_worker_)
    here_.emplace(queue_, seat_, this_thread.host);
}

serving_thread::~serving_thread() {
  stand();
}

void serving_thread::sit() {
  if (here_)
    return;
  seat_ = pool_.state_->borrow();
  if (seat_ == job_queue::no_seat)
    return;
  here_.emplace(queue_, seat_, nullptr);
  // The worker of this core is awake, or the seat would be its: beside it this
  // thread would only take its time, and the core of the seat is free.
  const auto core = current_core();
  if (pool_.own_policy() && take_all_cores(queue_.workers()) && core != seat_)
    on_core_.emplace(seat_);
}

void serving_thread::stand() {
  if (is_worker_ || !here_)
    return;
  on_core_.reset();
  here_.reset();
  queue_.give_back(seat_);
}

void serving_thread::serve(condition done) {
  if (is_worker_) {
    serve_as_worker(done);
    return;
  }
  sit();
  if (!here_)
    return;
  while (auto* j = queue_.wait_until(seat_, done))
    here_->run_chain(*j, done);
  stand();
}

void serving_thread::serve_as_worker(condition done) {
  constexpr std::chrono::microseconds pause{20};
  // Two threads must not serve one seat: who has borrowed it does until it
  // leaves.
  while (!done.holds())
    if (auto* j = queue_.is_lent(seat_) ? nullptr : queue_.pop(seat_))
      here_->run_chain(*j, done);
    else
      // The step may end without a job for this thread, and its owner's sleep
      // in the queue does not hear of that.
      std::this_thread::sleep_for(pause);
}

void serving_thread::serve_ready() {
  sit();
  if (here_ && !(is_worker_ && queue_.is_lent(seat_)))
    while (auto* j = queue_.pop(seat_))
      here_->run_chain(*j);
}

} // namespace actors

} // namespace troupe
