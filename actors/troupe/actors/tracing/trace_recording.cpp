// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/trace_recording.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>

#include <caf/actor_system.hpp>
#include <caf/blocking_actor.hpp>
#include <caf/spawn_options.hpp>

#include <chrono>
#include <new>
#include <utility>

namespace troupe::actors {

namespace {

using trace::clock_reading;

/// Events stay in their rings for so long: a process that is killed loses as
/// many. A ring has room for some 20 ms of the fastest graphs.
constexpr std::chrono::milliseconds between_writes{10};

} // namespace

/// What the actor's thread does. The thread ends before the object.
class trace_recording::loop {
public:
  loop(recorder& from, trace_level level, const std::filesystem::path& file,
       subject what)
    : from_(from), file_(file) {
    begin_ = last_ = clock_reading::now();
    what.run.begin_unix_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::system_clock::now().time_since_epoch())
        .count();
    file_.write(what.run);
    file_.write(what.graph);
    file_.write(what.phases.since(begin_.ns));
    level_before_ = from_.level();
    from_.take(); // of before
    lost_before_ = from_.lost();
    from_.set_level(std::max(level, level_before_));
  }

  void run() noexcept {
    std::unique_lock lock{mutex_};
    while (!is_over_ && !failure_) {
      changed_.wait_for(lock, between_writes, [this] { return is_over_; });
      lock.unlock();
      write_events();
      lock.lock();
    }
    has_ended_ = true;
    changed_.notify_all();
  }

  void end() noexcept {
    std::unique_lock lock{mutex_};
    is_over_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return has_ended_; });
    lock.unlock();
    from_.set_level(level_before_);
    write_events(); // those after the last look
    try {
      if (!failure())
        file_.close();
    } catch (const error& e) {
      give_up(e.message().c_str());
    }
  }

  std::optional<std::string> failure() const {
    std::lock_guard guard{mutex_};
    return failure_;
  }

private:
  void write_events() noexcept {
    if (failure())
      return;
    try {
      const auto events = from_.take();
      const auto now = clock_reading::now();
      const auto all_lost = from_.lost();
      const auto lost = all_lost - std::exchange(lost_before_, all_lost);
      const auto first = std::exchange(last_, now);
      if (!events.empty() || lost > 0)
        file_.write(events, lost, first, now, begin_.ns);
    } catch (const error& e) {
      give_up(e.message().c_str());
    } catch (const std::bad_alloc&) {
      give_up("no memory");
    }
  }

  void give_up(const char* why) {
    from_.set_level(level_before_);
    std::lock_guard guard{mutex_};
    failure_ = why;
  }

  recorder& from_;
  trace::trace_writer file_;
  trace_level level_before_ = trace_level::off;
  clock_reading begin_, last_;
  std::uint64_t lost_before_ = 0;

  mutable std::mutex mutex_; // guards all that follow
  std::condition_variable changed_;
  bool is_over_ = false;
  bool has_ended_ = false;
  std::optional<std::string> failure_;
};

trace_recording::trace_recording(caf::actor_system& system, recorder& from,
                                 trace_level level,
                                 const std::filesystem::path& file,
                                 subject what)
  : loop_(std::make_shared<loop>(from, level, file, std::move(what))) {
  system.spawn<caf::detached + caf::hidden>(
    [loop = loop_](caf::blocking_actor*) { loop->run(); });
}

trace_recording::~trace_recording() {
  loop_->end();
}

std::optional<std::string> trace_recording::failure() const {
  return loop_->failure();
}

} // namespace troupe::actors
