// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/trace_recording.hpp>

#include <troupe/base/clock_pair.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/event_reader.hpp>

#include <caf/actor_system.hpp>
#include <caf/blocking_actor.hpp>
#include <caf/spawn_options.hpp>

#include <chrono>
#include <new>
#include <optional>
#include <utility>
#include <vector>

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
  loop(recorder& from, trace_level level, trace::trace_writer file,
       subject what)
    : file_(std::move(file)), actors_(from.actors()),
      events_(from, event_reader::start::now, level),
      level_(std::in_place, from, trace_level::off) {
    begin_ = last_ = clock_reading::now();
    what.run.begin_unix_ns = unix_ns_at(begin_.ns);
    file_.write(what.run);
    file_.write(what.graph);
    file_.write(what.phases.since(begin_.ns));
    level_->change(level);
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
    level_.reset(); // the actor can outlive the recorder
    write_events(); // those after the last look
    try {
      if (!failure())
        file_.close();
    } catch (const error& e) {
      give_up(e.message().c_str());
    }
  }

  void add(const trace::phase_log& ended) {
    std::lock_guard guard{mutex_};
    late_phases_.append(ended);
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
      const auto events = events_.take();
      const auto now = clock_reading::now();
      const auto lost = events_.lost() - std::exchange(lost_, events_.lost());
      const auto first = std::exchange(last_, now);
      // After the events were taken: all that they name is known by now.
      const auto actors = actors_.since(actors_known_);
      actors_known_ = actors.version;
      file_.write(actors, begin_.ns);
      if (const auto phases = take_phases(); !phases.empty())
        file_.write(phases);
      if (!events.empty() || lost > 0)
        file_.write(events, lost, first, now, begin_.ns);
    } catch (const error& e) {
      give_up(e.message().c_str());
    } catch (const std::bad_alloc&) {
      give_up("no memory");
    }
  }

  std::vector<trace::phase> take_phases() {
    std::lock_guard guard{mutex_};
    return std::exchange(late_phases_, {}).since(begin_.ns);
  }

  void give_up(const char* why) {
    if (level_)
      level_->change(trace_level::off);
    std::lock_guard guard{mutex_};
    failure_ = why;
  }

  trace::trace_writer file_;
  const actor_table& actors_;
  std::uint64_t actors_known_ = 0; // version of the table in the file
  event_reader events_;
  std::optional<level_request> level_; // until the end
  clock_reading begin_, last_;
  std::uint64_t lost_ = 0; // of those in the file

  mutable std::mutex mutex_; // guards all that follow
  std::condition_variable changed_;
  bool is_over_ = false;
  bool has_ended_ = false;
  std::optional<std::string> failure_;
  trace::phase_log late_phases_; // that are not in the file yet
};

trace_recording::trace_recording(caf::actor_system& system, recorder& from,
                                 trace_level level, trace::trace_writer file,
                                 subject what)
  : loop_(
    std::make_shared<loop>(from, level, std::move(file), std::move(what))) {
  system.spawn<caf::detached + caf::hidden>(
    [loop = loop_](caf::blocking_actor*) { loop->run(); });
}

trace_recording::~trace_recording() {
  end();
}

void trace_recording::add(const trace::phase_log& ended) {
  loop_->add(ended);
}

std::optional<std::string> trace_recording::end() {
  if (!std::exchange(has_ended_, true))
    loop_->end();
  return failure();
}

std::optional<std::string> trace_recording::failure() const {
  return loop_->failure();
}

} // namespace troupe::actors
