// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/job_queue.hpp>

#include <troupe/base/assert.hpp>

#include <pthread.h>
#include <sched.h>

#include <thread>
#include <utility>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace troupe {

namespace {

thread_local worker* current_worker = nullptr;

void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#endif
}

/// Held for a handful of instructions, by a worker on its own list nearly
/// always; so a flag beats a mutex.
class spin_flag {
public:
  void lock() noexcept {
    // Acquire pairs with the release in unlock: the list's links and whatever
    // the pusher wrote before are visible to who takes the job.
    while (held_.exchange(true, std::memory_order_acquire))
      while (held_.load(std::memory_order_relaxed))
        relax();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

private:
  std::atomic<bool> held_{false};
};

} // namespace

/// A doubly linked list of jobs under a spin flag. `size_` may be read without
/// the flag as a hint; the parking protocol's fences make the hint reliable
/// where that matters (see job_queue::state).
class job_list {
public:
  bool empty() const noexcept {
    return size_.load(std::memory_order_relaxed) == 0;
  }

  void push_newest(job& j) noexcept {
    flag_.lock();
    j.previous_ = nullptr;
    j.next_ = newest_;
    (newest_ ? newest_->previous_ : oldest_) = &j;
    newest_ = &j;
    count(1);
    flag_.unlock();
  }

  void push_oldest(job& j) noexcept {
    flag_.lock();
    j.next_ = nullptr;
    j.previous_ = oldest_;
    (oldest_ ? oldest_->next_ : newest_) = &j;
    oldest_ = &j;
    count(1);
    flag_.unlock();
  }

  job* take_newest() noexcept {
    return take([this] { return newest_; });
  }
  job* take_oldest() noexcept {
    return take([this] { return oldest_; });
  }

private:
  template <class Which>
  job* take(Which which) noexcept {
    if (empty())
      return nullptr;
    flag_.lock();
    auto* j = which();
    if (j) {
      (j->previous_ ? j->previous_->next_ : newest_) = j->next_;
      (j->next_ ? j->next_->previous_ : oldest_) = j->previous_;
      count(-1);
    }
    flag_.unlock();
    return j;
  }

  void count(int change) noexcept {
    size_.store(size_.load(std::memory_order_relaxed) + change,
                std::memory_order_relaxed);
  }

  spin_flag flag_;
  std::atomic<int> size_{0}; // written under the flag
  job* newest_ = nullptr;
  job* oldest_ = nullptr;
};

namespace {

/// The two priorities of one worker, on cache lines of their own.
struct alignas(64) ready_lists {
  job_list high;
  job_list normal;

  bool empty() const noexcept { return high.empty() && normal.empty(); }
  void push(job& j, job_priority priority) noexcept {
    (priority == job_priority::high ? high : normal).push_newest(j);
  }
  void push_oldest(job& j, job_priority priority) noexcept {
    (priority == job_priority::high ? high : normal).push_oldest(j);
  }
  job* take_newest() noexcept {
    auto* j = high.take_newest();
    return j ? j : normal.take_newest();
  }
  job* take_oldest() noexcept {
    auto* j = high.take_oldest();
    return j ? j : normal.take_oldest();
  }
};

} // namespace

/// Parking without lost wake-ups.
///
///   push:  add to a list; fence F1; if sleepers > 0, wake one
///   park:  ++sleepers; fence F2; if a list is not empty and a claim succeeds,
///          look again; else sleep until a permit can be taken
///
/// F1 and F2 are sequentially consistent. If F1 comes first in their order,
/// the parker's look sees the job; if F2 does, the pusher sees the sleeper.
/// Either way the job is found. A *claim* takes one off `sleepers`: only who
/// claims may act for that sleeper, be it a pusher, who then owes a permit, or
/// the sleeper itself, who then needs none. So permits never exceed the
/// sleepers they are for, and none is lost.
struct job_queue::state {
  explicit state(std::size_t workers) : own(workers), each(workers) {}

  /// What only one worker writes.
  struct alignas(64) worker_state {
    std::uint32_t looks = 0;
    /// Odd while in run_chain. Written release by its worker, read acquire by
    /// quiesce: who sees it even or changed sees all that the chain did.
    std::atomic<std::uint64_t> epoch{0};
  };

  std::vector<ready_lists> own;
  ready_lists foreign;
  std::vector<worker_state> each;
  alignas(64) std::atomic<int> sleepers{0};
  alignas(64) std::atomic<int> permits{0};
  std::atomic<bool> stopped{false};

  bool any() const noexcept {
    if (!foreign.empty())
      return true;
    for (auto& lists : own)
      if (!lists.empty())
        return true;
    return false;
  }

  bool claim() noexcept {
    auto n = sleepers.load(std::memory_order_relaxed);
    while (n > 0)
      if (sleepers.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel,
                                         std::memory_order_relaxed))
        return true;
    return false;
  }

  void wake_one() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst); // F1
    if (sleepers.load(std::memory_order_relaxed) > 0 && claim()) {
      permits.fetch_add(1, std::memory_order_release);
      permits.notify_one();
    }
  }

  void take_permit() noexcept {
    for (;;) {
      auto n = permits.load(std::memory_order_acquire);
      while (n > 0)
        if (permits.compare_exchange_weak(n, n - 1, std::memory_order_acquire))
          return;
      permits.wait(0, std::memory_order_acquire);
    }
  }
};

// -- worker -------------------------------------------------------------------

worker::worker(job_queue& queue, std::size_t index, void* host) noexcept
  : queue_(queue), index_(index), host_(host),
    outer_(std::exchange(current_worker, this)) {
  TROUPE_ASSERT(index < queue.workers());
}

worker::~worker() {
  current_worker = outer_;
}

worker* worker::current() noexcept {
  return current_worker;
}

void worker::run_chain(job& j) {
  chain_length_ = 0;
  queue_.enter(index_);
  for (auto* now = &j; now; now = std::exchange(next_, nullptr))
    now->run(*this);
  queue_.leave(index_);
}

bool worker::run_next(job& j) noexcept {
  if (next_ || chain_length_ >= chain_limit)
    return false;
  ++chain_length_;
  next_ = &j;
  return true;
}

// -- job_queue ----------------------------------------------------------------

job_queue::job_queue(std::size_t workers)
  : state_(std::make_unique<state>(workers)) {
  TROUPE_ASSERT(workers > 0);
}

job_queue::~job_queue() = default;

std::size_t job_queue::workers() const noexcept {
  return state_->own.size();
}

void job_queue::push(job& j, job_priority priority) noexcept {
  auto* w = worker::current();
  if (w && &w->queue() == this)
    state_->own[w->index()].push(j, priority);
  else
    state_->foreign.push(j, priority);
  state_->wake_one();
}

void job_queue::push_to(std::size_t home, job& j,
                        job_priority priority) noexcept {
  state_->own[home % state_->own.size()].push(j, priority);
  state_->wake_one();
}

void job_queue::yield(job& j, job_priority priority) noexcept {
  auto* w = worker::current();
  TROUPE_ASSERT(w && &w->queue() == this);
  state_->own[w->index()].push_oldest(j, priority);
}

bool job_queue::others_wait(std::size_t index) const noexcept {
  return !state_->foreign.empty() || !state_->own[index].empty();
}

job* job_queue::pop(std::size_t index) noexcept {
  auto& s = *state_;
  if (++s.each[index].looks % 2 == 0)
    if (auto* j = s.foreign.take_oldest())
      return j;
  if (auto* j = s.own[index].take_newest())
    return j;
  if (auto* j = s.foreign.take_oldest())
    return j;
  for (std::size_t step = 1; step < s.own.size(); ++step)
    if (auto* j = s.own[(index + step) % s.own.size()].take_oldest())
      return j;
  return nullptr;
}

job* job_queue::wait(std::size_t index) noexcept {
  constexpr int looks_before_sleep = 32;
  auto& s = *state_;
  for (;;) {
    for (int look = 0; look < looks_before_sleep; ++look) {
      if (auto* j = pop(index))
        return j;
      relax();
    }
    s.sleepers.fetch_add(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst); // F2
    const auto stopping = s.stopped.load(std::memory_order_relaxed);
    if (stopping || s.any()) {
      if (!s.claim())
        s.take_permit();
      if (stopping && !s.any())
        return nullptr;
      continue;
    }
    s.take_permit();
  }
}

void job_queue::stop() noexcept {
  state_->stopped.store(true, std::memory_order_relaxed);
  for (std::size_t i = 0; i < state_->own.size(); ++i)
    state_->wake_one();
}

void job_queue::enter(std::size_t index) noexcept {
  auto& epoch = state_->each[index].epoch;
  epoch.store(epoch.load(std::memory_order_relaxed) + 1,
              std::memory_order_release);
}

void job_queue::leave(std::size_t index) noexcept {
  enter(index);
}

void job_queue::quiesce() const noexcept {
  for (auto& each : state_->each) {
    const auto seen = each.epoch.load(std::memory_order_acquire);
    if (seen % 2 == 0)
      continue;
    while (each.epoch.load(std::memory_order_acquire) == seen)
      std::this_thread::yield();
  }
}

void job_queue::restart() noexcept {
  state_->stopped.store(false, std::memory_order_relaxed);
}

// -- threads ------------------------------------------------------------------

namespace {

std::vector<int> allowed_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set))
        cores.push_back(i);
  if (cores.empty())
    cores.push_back(0);
  return cores;
}

} // namespace

bool pin_this_thread(std::size_t index) noexcept {
  // The allowed set is the process's, read once from its main thread's mask
  // before any thread was pinned.
  static const auto cores = allowed_cores();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[index % cores.size()], &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

std::size_t usable_cores() noexcept {
  static const auto count = allowed_cores().size();
  return count;
}

} // namespace troupe
