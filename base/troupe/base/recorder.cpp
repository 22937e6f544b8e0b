// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/recorder.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/job_queue.hpp>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace troupe {

std::string_view to_string(event_kind kind) noexcept {
  static constexpr std::array<std::string_view, 17> names{
    "step_begin",   "step_end", "feed",        "fetch",     "failure",
    "run_begin",    "run_end",  "completion",  "hand_over", "help_begin",
    "help_end",     "arrival",  "merge_begin", "merge_end", "allocation",
    "deallocation", "message"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {

constexpr std::array<std::string_view, 4> level_names{"off", "steps", "ops",
                                                      "messages"};

} // namespace

std::string_view to_string(trace_level level) noexcept {
  return level_names[static_cast<std::size_t>(level)];
}

trace_level parse_trace_level(std::string_view text) {
  const auto found = std::ranges::find(level_names, text);
  if (found == level_names.end())
    throw error(errc::invalid_argument,
                "'" + std::string{text}
                  + "' is no level of a trace (off, steps, ops, messages)");
  return static_cast<trace_level>(found - level_names.begin());
}

// -- event_ring ---------------------------------------------------------------

std::uint64_t event_ring::take(std::vector<trace_event>& into) {
  const auto capacity = mask_ + 1;
  const auto head = head_.load(std::memory_order_acquire);
  const auto oldest = head > capacity ? head - capacity : 0;
  const auto first = std::max(taken_, oldest);
  const auto begin = into.size();
  for (auto i = first; i < head; ++i) {
    std::array<std::uint64_t, 4> words{};
    auto& from = events_[i & mask_];
    for (std::size_t w = 0; w < words.size(); ++w)
      words[w] = from[w].load(std::memory_order_acquire);
    into.push_back(std::bit_cast<trace_event>(words));
  }
  // The event that is being written replaces the one `capacity` before it.
  const auto written = head_.load(std::memory_order_acquire);
  const auto valid = written >= capacity ? written - capacity + 1 : 0;
  const auto overwritten = std::min(std::max(first, valid), head) - first;
  into.erase(into.begin() + static_cast<std::ptrdiff_t>(begin),
             into.begin() + static_cast<std::ptrdiff_t>(begin + overwritten));
  const auto lost = first - taken_ + overwritten;
  taken_ = head;
  return lost;
}

// -- recorder -----------------------------------------------------------------

recorder::recorder(const job_queue& queue, std::size_t events_per_ring)
  : queue_(queue), events_per_ring_(std::bit_ceil(events_per_ring)),
    first_ticks_(ticks()), first_ns_(now_ns()) {}

void recorder::set_level(trace_level level) {
  std::lock_guard guard{mutex_};
  if (level != trace_level::off && rings_.empty())
    for (std::size_t i = 0; i <= queue_.workers(); ++i)
      rings_.push_back(std::make_unique<event_ring>(events_per_ring_));
  level_.store(level, std::memory_order_release);
}

void recorder::record_of_other(const trace_event& e) noexcept {
  std::lock_guard guard{others_};
  rings_.back()->write(e);
}

void recorder::record(event_kind kind, handle_id from, step_id step,
                      std::uint64_t amount, handle_id to) noexcept {
  const auto* here = worker::current_of(queue_);
  const auto index =
    here ? static_cast<std::uint16_t>(here->index()) : no_worker;
  record(kind, index, from, to, step, amount, ticks());
}

std::vector<trace_event> recorder::take() {
  std::vector<trace_event> events;
  std::lock_guard guard{mutex_};
  for (auto& ring : rings_)
    lost_ += ring->take(events);
  std::ranges::stable_sort(events, {}, &trace_event::time);
  return events;
}

double recorder::ns_per_tick() const noexcept {
  return static_cast<double>(now_ns() - first_ns_)
         / static_cast<double>(ticks() - first_ticks_);
}

} // namespace troupe
