// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/step_watchdog.hpp>

#include <troupe/actors/tracing/core_times.hpp>
#include <troupe/actors/tracing/stall.hpp>
#include <troupe/actors/tracing/step_outcome.hpp>
#include <troupe/actors/tracing/worker_stacks.hpp>
#include <troupe/base/clock.hpp>
#include <troupe/base/threads.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace troupe {

namespace {

using actors::core_times;
using actors::stall;
using actors::wait_chain;
using clock = std::chrono::steady_clock;

std::string seconds_text(clock::duration d) {
  const auto seconds = std::chrono::duration<double>(d).count();
  char text[32];
  if (seconds < 0.1)
    std::snprintf(text, sizeof text, "%.0f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

} // namespace

class step_watchdog::loop {
public:
  loop(const executor& watched, std::chrono::milliseconds limit,
       std::function<void(const std::string&)> tell, watchdog_context about)
    : watched_(watched), limit_(limit), tell_(std::move(tell)),
      about_(std::move(about)),
      thread_(start_thread("troupe-watchdog", [this] { run(); })) {}

  ~loop() {
    {
      std::lock_guard guard{mutex_};
      is_over_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }

private:
  /// The step that is watched.
  struct watched_step {
    step_id id;
    clock::time_point since; ///< not later than this look
    core_times cores;
    bool was_slowed = false; ///< by slow motion
    /// When it was last seen to wait for ranks that are paused.
    std::optional<clock::time_point> paused = {};
    bool is_told = false;
    bool is_stall_told = false;
  };
  /// What the last link of the chain was, when it was first seen so.
  struct last_link {
    handle_id handle = no_handle;
    actors::progress how_far = actors::progress::waits;
    ticket call = 0;
    clock::time_point at{};
    std::uint64_t moved = 0; ///< of the call
  };

  void run() {
    // A step is watched from the first look after its begin.
    const auto pause = std::clamp<std::chrono::milliseconds>(
      limit_ / 16, std::chrono::milliseconds{1}, std::chrono::seconds{1});
    std::unique_lock lock{mutex_};
    while (!ended_.wait_for(lock, pause, [this] { return is_over_; })) {
      lock.unlock();
      look();
      look_at_data();
      lock.lock();
    }
    if (watched_.steps_ended() != ended_steps_)
      leave(); // the last step has ended
  }

  void look() {
    const auto ended = watched_.steps_ended();
    if (std::exchange(ended_steps_, ended) != ended) {
      leave();
      paused_since_.reset();
    }
    auto chain = watched_.why();
    if (chain.links.empty()) { // the application does something else
      look_at_pause();
      return leave();
    }
    see_last_link(chain);
    const auto id = chain.links.front().step;
    if (!oldest_ || oldest_->id != id) {
      leave();
      oldest_ = watched_step{id, clock::now(), core_times::now()};
      return;
    }
    oldest_->was_slowed = oldest_->was_slowed || op_delay().count() > 0;
    if (!chain.paused.empty())
      oldest_->paused = clock::now();
    const auto is_stall = !is_in_slow_motion() && !was_just_paused();
    if ((is_stall ? oldest_->is_stall_told : oldest_->is_told)
        || clock::now() - oldest_->since < limit_)
      return;
    oldest_->is_told = true;
    oldest_->is_stall_told = is_stall;
    const auto all = actors::line_of(chain);
    const auto seen = observe(std::move(chain));
    // The step began before it was seen to wait: with its op, or earlier.
    oldest_->since = std::min(oldest_->since, clock::now() - seen.ran);
    tell_("step " + std::to_string(id) + " has not ended for "
          + seconds_text(clock::now() - oldest_->since) + ": "
          + actors::text_of(seen) + " (" + all + ")");
    if (is_stall)
      tell_of_stall();
  }

  /// How much later each op begins. Ops that nobody looks at are not delayed.
  std::chrono::milliseconds op_delay() const {
    return watched_.shared_trace()->wants(trace_level::ops)
             ? watched_.pace().op_delay()
             : std::chrono::milliseconds{0};
  }

  /// Whether the step takes long because its ops are delayed: it goes on.
  bool is_in_slow_motion() const {
    return oldest_->was_slowed && clock::now() - link_.at < limit_ + op_delay();
  }

  /// Whether the step takes long because others are paused, or were until now.
  bool was_just_paused() const {
    return oldest_->paused && clock::now() - *oldest_->paused < limit_;
  }

  void tell_of_stall() const {
    if (about_.stalled)
      about_.stalled();
  }

  /// Tells once of a run that somebody has paused.
  void look_at_pause() {
    if (!watched_.pace().is_paused()) {
      paused_since_.reset();
    } else if (!paused_since_) {
      paused_since_ = clock::now();
      pause_is_told_ = false;
    } else if (!pause_is_told_ && clock::now() - *paused_since_ >= limit_) {
      pause_is_told_ = true;
      tell_("no step is under way: "
            + (about_.rank ? "rank " + std::to_string(*about_.rank)
                           : std::string{"the run"})
            + " has been paused for "
            + seconds_text(clock::now() - *paused_since_));
    }
  }

  void see_last_link(const wait_chain& chain) {
    const auto& last = chain.links.back();
    const auto call = chain.call ? chain.call->position : 0;
    if (link_.handle == last.handle && link_.how_far == last.how_far
        && link_.call == call)
      return;
    link_ = {last.handle, last.how_far, call, clock::now(),
             chain.call ? chain.call->moved : 0};
  }

  stall observe(wait_chain chain) const {
    stall seen;
    seen.since = clock::now() - link_.at;
    seen.cores = core_times::now().since(oldest_->cores);
    seen.cores_over = clock::now() - oldest_->since;
    seen.rank = about_.rank;
    seen.op_delay = op_delay();
    if (about_.usual)
      seen.usual = about_.usual(chain.links.back().handle);
    if (chain.call)
      seen.moved = chain.call->moved - std::min(chain.call->moved, link_.moved);
    if (chain.links.back().how_far == actors::progress::runs)
      see_worker(chain.links.back(), seen);
    seen.chain = std::move(chain);
    return seen;
  }

  /// What the worker of the last link is in the middle of, if the application
  /// lets it be asked.
  void see_worker(const wait_chain::link& last, stall& seen) const {
    for (auto& stack : watched_.busy_stacks())
      if (stack.op == last.handle && stack.step == last.step
          && !stack.is_help) {
        seen.ran = std::chrono::nanoseconds{stack.taken_ns - stack.since_ns};
        seen.function = actors::useful_function(stack.frames);
      }
  }

  /// Tells once that no step is under way because its data is not there, and
  /// once that it has come.
  void look_at_data() {
    if (!about_.data)
      return;
    const auto since = about_.data->since_ns();
    if (since != data_since_) {
      if (data_is_told_)
        tell_("step " + std::to_string(data_step_) + " has its feed after "
              + seconds_text(clock::now() - data_seen_));
      data_since_ = since;
      data_step_ = about_.data->number();
      data_seen_ = clock::now();
      data_is_told_ = false;
      data_cores_ = since != 0 ? core_times::now() : core_times{};
      return;
    }
    if (since == 0 || data_is_told_ || clock::now() - data_seen_ < limit_)
      return;
    stall seen;
    seen.chain = watched_.why();
    if (!seen.chain.links.empty())
      return; // the step before has not ended: what it waits for is told
    seen.awaited_step = data_step_;
    seen.waited_for_data = clock::now() - data_seen_;
    seen.cores = core_times::now().since(data_cores_);
    seen.cores_over = seen.waited_for_data;
    seen.rank = about_.rank;
    data_is_told_ = true;
    tell_("no step is under way: " + actors::text_of(seen));
    tell_of_stall();
  }

  /// The step that was watched has ended.
  void leave() {
    if (oldest_ && oldest_->is_told)
      tell_("step " + std::to_string(oldest_->id)
            + (actors::has_failed(watched_, oldest_->id) ? " has failed after "
                                                         : " has ended after ")
            + seconds_text(clock::now() - oldest_->since));
    oldest_.reset();
    link_ = {};
  }

  const executor& watched_;
  const std::chrono::milliseconds limit_;
  const std::function<void(const std::string&)> tell_;
  const watchdog_context about_;
  // Used by the thread alone.
  std::optional<watched_step> oldest_;
  last_link link_;
  std::uint64_t ended_steps_ = 0;
  std::optional<clock::time_point> paused_since_;
  bool pause_is_told_ = false;
  std::uint64_t data_since_ = 0; // as `data_wait` has it
  std::uint64_t data_step_ = 0;
  clock::time_point data_seen_;
  core_times data_cores_;
  bool data_is_told_ = false;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_; // uses all members above
};

step_watchdog::step_watchdog(const executor& watched,
                             std::chrono::milliseconds limit,
                             std::function<void(const std::string&)> tell,
                             watchdog_context about)
  : loop_(std::make_unique<loop>(watched, limit, std::move(tell),
                                 std::move(about))) {}

step_watchdog::~step_watchdog() = default;

} // namespace troupe
