// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/workers/idle_workers.hpp>

#include <troupe/actors/workers/busy_workers.hpp>
#include <troupe/base/spin.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <thread>
#include <utility>

namespace troupe::actors {

namespace {

/// Spins first, because parts end at about the same time unless a helper was
/// preempted.
template <class Done>
void wait_until(Done done) {
  constexpr int looks_before_yield = 4096;
  for (int looks = 0; !done(); ++looks)
    if (looks < looks_before_yield)
      relax();
    else
      std::this_thread::yield();
}

} // namespace

/// The parts of one worker's op.
class idle_workers::round {
public:
  round(job_queue& queue, std::size_t owner, recorder* trace,
        busy_workers* busy);
  ~round();

  void works_on(handle_id op, step_id step) noexcept {
    op_ = op;
    step_ = step;
  }
  bool is_open() const noexcept { return part_ != nullptr; }
  void run(std::size_t parts, const part_function& part);
  bool idle() const noexcept;

private:
  class helper;

  void ask_for_help();
  void join(std::size_t helper_index) noexcept;
  void help(std::size_t helper_index) noexcept;
  void take_parts() noexcept;
  void run_part(std::size_t i) noexcept;

  job_queue& queue_;
  std::size_t owner_; // the worker whose op it is
  recorder* trace_;
  busy_workers* busy_;
  std::deque<helper> helpers_;
  handle_id op_ = no_handle; // this and the next member: for the trace
  step_id step_ = 0;
  const part_function* part_ = nullptr; // null: no round is open
  std::size_t parts_ = 0;
  std::exception_ptr failure_; // written by the thread that set `failed_`
  alignas(64) std::atomic<std::size_t> next_{0}; // the next part to take
  // Number of finished parts. Incremented with release, read with acquire by
  // `run`.
  std::atomic<std::size_t> done_{0};
  // A hint to skip parts; `done_` publishes the exception.
  std::atomic<bool> failed_{false};
  // Number of helpers inside, plus `closed` while there is no round. A helper
  // first increments the count, then checks it. If the gate was closed, it
  // leaves without reading anything. If it was open (acquire, pairs with the
  // opening release), the round's members stay valid until the helper leaves,
  // because `run` closes the gate and waits for all helpers before it returns.
  static constexpr int closed = 1 << 30;
  std::atomic<int> gate_{closed};
};

/// A request for help in the queue. Pushed again only after it has run.
class idle_workers::round::helper : public job {
public:
  explicit helper(round& owner) : owner_(owner) {}

  void ask() noexcept {
    if (!queued_.exchange(true, std::memory_order_acq_rel))
      owner_.queue_.push(*this);
  }

  void run(worker& on) override {
    owner_.join(on.index());
    queued_.store(false, std::memory_order_release);
  }

  bool is_queued() const noexcept {
    return queued_.load(std::memory_order_acquire);
  }

private:
  round& owner_;
  std::atomic<bool> queued_{false};
};

idle_workers::round::round(job_queue& queue, std::size_t owner, recorder* trace,
                           busy_workers* busy)
  : queue_(queue), owner_(owner), trace_(trace), busy_(busy) {
  for (std::size_t i = 1; i < queue.workers(); ++i)
    helpers_.emplace_back(*this);
}

idle_workers::round::~round() = default;

bool idle_workers::round::idle() const noexcept {
  return std::ranges::none_of(helpers_,
                              [](const helper& h) { return h.is_queued(); });
}

void idle_workers::round::run(std::size_t parts, const part_function& part) {
  part_ = &part;
  parts_ = parts;
  done_.store(0, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  gate_.fetch_and(~closed, std::memory_order_release);
  ask_for_help();
  take_parts();
  wait_until([&] { return done_.load(std::memory_order_acquire) == parts; });
  gate_.fetch_or(closed, std::memory_order_acq_rel);
  wait_until([&] { return gate_.load(std::memory_order_acquire) == closed; });
  part_ = nullptr;
  if (failure_)
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

void idle_workers::round::ask_for_help() {
  const auto wanted = std::min(helpers_.size(), parts_ > 0 ? parts_ - 1 : 0);
  for (std::size_t i = 0; i < wanted; ++i)
    helpers_[i].ask();
}

void idle_workers::round::join(std::size_t helper_index) noexcept {
  if ((gate_.fetch_add(1, std::memory_order_acq_rel) & closed) == 0)
    help(helper_index);
  gate_.fetch_sub(1, std::memory_order_release);
}

void idle_workers::round::help(std::size_t helper_index) noexcept {
  const auto traced = trace_ && trace_->wants(trace_level::ops);
  if (traced)
    trace_->record(event_kind::help_begin, op_, step_);
  if (busy_)
    busy_->helps(helper_index, owner_);
  take_parts();
  if (busy_)
    busy_->ends(helper_index);
  if (traced)
    trace_->record(event_kind::help_end, op_, step_);
}

void idle_workers::round::take_parts() noexcept {
  for (;;) {
    const auto i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= parts_)
      return;
    if (!failed_.load(std::memory_order_relaxed))
      run_part(i);
    done_.fetch_add(1, std::memory_order_release);
  }
}

void idle_workers::round::run_part(std::size_t i) noexcept {
  try {
    (*part_)(i);
  } catch (...) {
    if (!failed_.exchange(true, std::memory_order_relaxed))
      failure_ = std::current_exception();
  }
}

// -- idle_workers -------------------------------------------------------------

idle_workers::idle_workers(job_queue& queue, recorder* trace,
                           busy_workers* busy)
  : queue_(queue) {
  for (std::size_t i = 0; i < queue.workers(); ++i)
    rounds_.push_back(std::make_unique<round>(queue, i, trace, busy));
}

idle_workers::~idle_workers() {
  while (!idle())
    std::this_thread::yield();
}

idle_workers::round* idle_workers::round_here() const noexcept {
  auto* here = worker::current_of(queue_);
  return here ? rounds_[here->index()].get() : nullptr;
}

void idle_workers::works_on(std::size_t worker, handle_id op,
                            step_id step) noexcept {
  if (auto& mine = *rounds_[worker]; !mine.is_open())
    mine.works_on(op, step);
}

void idle_workers::run(std::size_t parts, const part_function& part) {
  if (auto* mine = round_here(); mine && !mine->is_open() && parts > 1)
    return mine->run(parts, part);
  run_parts(nullptr, parts, part);
}

bool idle_workers::idle() const noexcept {
  return std::all_of(rounds_.begin(), rounds_.end(),
                     [](auto& r) { return r->idle(); });
}

} // namespace troupe::actors
