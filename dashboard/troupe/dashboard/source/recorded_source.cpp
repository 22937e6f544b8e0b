// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/source/recorded_source.hpp>

#include <troupe/base/error.hpp>
#include <troupe/dashboard/picture/answers.hpp>
#include <troupe/trace/join.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace troupe::dashboard {

namespace {

std::vector<trace::run_info>
runs_of(const std::vector<trace::process_trace>& parts) {
  std::vector<trace::run_info> all;
  for (const auto& part : parts)
    all.push_back(part.run);
  return all;
}

} // namespace

recorded_source::recorded_source(std::vector<trace::process_trace> parts,
                                 clock::time_point (*now)())
  : ranks_(runs_of(parts)), trace_(trace::join(std::move(parts))), now_(now),
    last_(now()) {}

std::vector<trace_event> recorded_source::take() {
  const auto& all = trace_.events;
  const auto now = now_();
  const auto passed = now - std::exchange(last_, now);
  const auto end = std::exchange(wants_step_, false) ? end_of_step()
                   : is_paused_                      ? next_
                   : is_played_ ? end_of_what_is_due(passed)
                                : all.size();
  std::vector<trace_event> taken(
    all.begin() + static_cast<std::ptrdiff_t>(next_),
    all.begin() + static_cast<std::ptrdiff_t>(end));
  next_ = end;
  if (!taken.empty())
    now_ns_ = taken.back().time;
  return taken;
}

actor_table::changes recorded_source::take_actors() {
  actor_table::changes all;
  if (std::exchange(has_given_actors_, true))
    return all;
  for (actor_number i = 0; i < trace_.actors.size(); ++i)
    all.actors.emplace_back(i, trace_.actors[i]);
  for (std::uint32_t i = 0; i < trace_.message_types.size(); ++i)
    all.types.emplace_back(i, trace_.message_types[i]);
  return all;
}

/// Behind the next end of a step.
std::size_t recorded_source::end_of_step() const {
  const auto& all = trace_.events;
  const auto found = std::find_if(
    all.begin() + static_cast<std::ptrdiff_t>(next_), all.end(),
    [](const trace_event& e) { return e.kind == event_kind::step_end; });
  return found == all.end() ? all.size()
                            : static_cast<std::size_t>(found - all.begin()) + 1;
}

/// An event is due when as much time has passed since the one before as in the
/// run, and for an op the delay, too.
std::size_t recorded_source::end_of_what_is_due(clock::duration passed) {
  unspent_ += passed;
  auto shown_ns = now_ns_;
  auto end = next_;
  for (; end < trace_.events.size(); ++end) {
    const auto& e = trace_.events[end];
    const auto due =
      std::chrono::nanoseconds{e.time - std::min(e.time, shown_ns)}
      + (e.kind == event_kind::run_begin ? delay_
                                         : std::chrono::milliseconds{0});
    if (due > unspent_)
      break;
    unspent_ -= due;
    shown_ns = std::max(shown_ns, e.time);
  }
  if (end == trace_.events.size())
    unspent_ = {};
  return end;
}

// Between two events the time goes on.
std::uint64_t recorded_source::now_ns() const {
  if (next_ >= trace_.events.size() || unspent_.count() <= 0)
    return now_ns_;
  const auto next = std::max(now_ns_, trace_.events[next_].time);
  return std::min(next, now_ns_ + static_cast<std::uint64_t>(unspent_.count()));
}

run_state recorded_source::state() const {
  if (next_ >= trace_.events.size())
    return run_state::ended;
  return is_paused_ ? run_state::paused : run_state::running;
}

actors::wait_chain recorded_source::why(const live_picture& picture,
                                        std::optional<handle_id> id) const {
  if (!id)
    return why_in(picture);
  if (*id >= trace_.graph.handles.size())
    throw error(errc::not_found, "no handle " + std::to_string(*id));
  return why_in(picture, *id);
}

std::optional<std::filesystem::path>
recorded_source::obey(command what, std::chrono::milliseconds delay) {
  switch (what) {
  case command::pause: is_paused_ = true; break;
  case command::resume:
    is_paused_ = false;
    last_ = now_();
    break;
  case command::step:
    is_paused_ = true;
    wants_step_ = true;
    unspent_ = {};
    break;
  case command::slow: delay_ = delay; break;
  case command::rewind:
    ++generation_;
    next_ = 0;
    has_given_actors_ = false;
    // What a flight recorder has held begins long after the run.
    now_ns_ = trace_.events.empty() ? 0 : trace_.events.front().time;
    unspent_ = {};
    is_paused_ = wants_step_ = false;
    is_played_ = true;
    last_ = now_();
    break;
  case command::dump:
    throw error(errc::invalid_argument, "this run is in a file already");
  }
  return std::nullopt;
}

} // namespace troupe::dashboard
