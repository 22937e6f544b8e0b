// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/step_watchdog.hpp>

#include <troupe/actors/tracing/core_times.hpp>
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
using actors::progress;
using actors::wait_chain;
using clock = std::chrono::steady_clock;

std::string seconds_text(clock::duration d) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s",
                std::chrono::duration<double>(d).count());
  return text;
}

std::string seconds_text(std::uint64_t ns) {
  return seconds_text(std::chrono::nanoseconds{ns});
}

/// What the end of the chain says about the cause.
std::string cause_of(const wait_chain& chain) {
  const auto& last = chain.links.back();
  if (!chain.missing.empty())
    return "lost message: what " + chain.missing + " sends has not arrived";
  switch (last.how_far) {
  case progress::runs:
    return "slow op: " + last.name + " runs on worker "
           + std::to_string(last.worker);
  case progress::launched:
    return "slow op: the launch of " + last.name + " is not complete";
  case progress::is_ready:
    return "stuck worker: no worker has come to stream " + last.stream
           + ", where " + last.name + " is ready";
  default: return last.name + " waits";
  }
}

/// The threads of a process that is preempted are ready, and have no core.
std::string text_of(const core_times& before) {
  const auto now = core_times::now();
  const auto ran = now.ran_ns - std::min(now.ran_ns, before.ran_ns);
  const auto waited = now.waited_ns - std::min(now.waited_ns, before.waited_ns);
  if (waited == 0 || waited < ran)
    return {};
  return "; preempted workers: threads of this process waited "
         + seconds_text(waited) + " for a core and ran " + seconds_text(ran);
}

std::string chain_text(const wait_chain& chain) {
  std::string text;
  for (auto& link : chain.links)
    text += (text.empty() ? "" : "; ") + actors::to_string(link);
  return text;
}

} // namespace

class step_watchdog::loop {
public:
  loop(const executor& watched, std::chrono::milliseconds limit,
       std::function<void(const std::string&)> tell)
    : watched_(watched), limit_(limit), tell_(std::move(tell)),
      thread_(start_thread([this] { run(); })) {}

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
    bool is_told = false;
  };

  void run() {
    const auto pause = std::clamp<std::chrono::milliseconds>(
      limit_ / 8, std::chrono::milliseconds{1}, std::chrono::seconds{1});
    std::unique_lock lock{mutex_};
    while (!ended_.wait_for(lock, pause, [this] { return is_over_; })) {
      lock.unlock();
      look();
      lock.lock();
    }
  }

  /// Looks into the graph only if no step has ended for a while.
  void look() {
    const auto ended = watched_.steps_ended();
    if (ended != ended_steps_ || chain_is_due_ > clock::now()) {
      if (std::exchange(ended_steps_, ended) != ended) {
        leave();
        chain_is_due_ = clock::now() + limit_ / 4;
      }
      return;
    }
    const auto chain = watched_.why();
    if (chain.links.empty()) { // the application does something else
      chain_is_due_ = clock::now() + limit_ / 4;
      return leave();
    }
    const auto id = chain.links.front().step;
    if (!oldest_ || oldest_->id != id) {
      leave();
      oldest_ = watched_step{id, clock::now(), core_times::now()};
      return;
    }
    const auto took = clock::now() - oldest_->since;
    if (oldest_->is_told || took < limit_)
      return;
    oldest_->is_told = true;
    tell_("step " + std::to_string(id) + " has not ended for "
          + seconds_text(took) + ": " + cause_of(chain)
          + text_of(oldest_->cores) + " (" + chain_text(chain) + ")");
  }

  /// The step that was watched has ended.
  void leave() {
    if (oldest_ && oldest_->is_told)
      tell_("step " + std::to_string(oldest_->id) + " has ended after "
            + seconds_text(clock::now() - oldest_->since));
    oldest_.reset();
  }

  const executor& watched_;
  const std::chrono::milliseconds limit_;
  const std::function<void(const std::string&)> tell_;
  // Used by the thread alone.
  std::optional<watched_step> oldest_;
  std::uint64_t ended_steps_ = 0;
  clock::time_point chain_is_due_ = clock::now() + limit_ / 4;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread thread_; // uses all members above
};

step_watchdog::step_watchdog(const executor& watched,
                             std::chrono::milliseconds limit,
                             std::function<void(const std::string&)> tell)
  : loop_(std::make_unique<loop>(watched, limit, std::move(tell))) {}

step_watchdog::~step_watchdog() = default;

} // namespace troupe
