// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/source/live_source.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>

#include <algorithm>
#include <utility>

namespace troupe::dashboard {

namespace {

constexpr auto level_of_nobody = trace_level::steps;
constexpr auto level_of_watchers = trace_level::messages;

} // namespace

live_source::live_source(executor& of)
  : of_(of), head_(of.trace_head()), events_(of.trace()),
    level_(of.trace(), level_of_nobody), begin_(trace::clock_reading::now()),
    last_(begin_) {}

void live_source::watch(bool by_somebody) {
  level_.change(by_somebody ? level_of_watchers : level_of_nobody);
}

// Ticks become nanoseconds between two readings of both clocks.
std::vector<trace_event> live_source::take() {
  auto events = events_.take();
  const auto first = std::exchange(last_, trace::clock_reading::now());
  const auto ticks = static_cast<double>(last_.ticks - first.ticks);
  const auto rate =
    ticks > 0 ? static_cast<double>(last_.ns - first.ns) / ticks : 0.0;
  const auto from = static_cast<double>(first.ns - begin_.ns);
  for (auto& e : events) {
    // A thread may have read its clock before the first reading.
    const auto since =
      static_cast<double>(static_cast<std::int64_t>(e.time - first.ticks));
    e.time = static_cast<std::uint64_t>(std::max(0.0, from + since * rate));
  }
  return events;
}

actor_table::changes live_source::take_actors() {
  auto found = of_.trace().actors().since(actors_known_);
  actors_known_ = found.version;
  for (auto& [number, actor] : found.actors)
    if (actor.end_ns)
      *actor.end_ns -= static_cast<std::int64_t>(begin_.ns);
  return found;
}

std::uint64_t live_source::now_ns() const {
  return troupe::now_ns() - begin_.ns;
}

run_state live_source::state() const {
  if (!of_.pace().is_paused())
    return run_state::idle;
  return of_.why().links.empty() ? run_state::paused : run_state::pausing;
}

std::chrono::milliseconds live_source::op_delay() const {
  return of_.pace().op_delay();
}

std::vector<delayed_op> live_source::delayed_ops() const {
  return of_.pace().delayed_ops();
}

actors::wait_chain live_source::why(const live_picture&,
                                    std::optional<handle_id> id) const {
  return id ? of_.why(*id) : of_.why();
}

std::optional<std::filesystem::path>
live_source::obey(command what, std::chrono::milliseconds delay) {
  auto& pace = of_.pace();
  switch (what) {
  case command::pause: pace.pause(); break;
  case command::resume: pace.resume(); break;
  case command::step:
    pace.pause();
    pace.admit_step();
    break;
  case command::slow: pace.delay_ops(delay); break;
  case command::rewind:
    throw error(errc::invalid_argument,
                "a run that is under way cannot be rewound");
  case command::dump: return of_.dump_trace();
  }
  return std::nullopt;
}

} // namespace troupe::dashboard
