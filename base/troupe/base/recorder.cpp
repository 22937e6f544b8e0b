// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/recorder.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/job_queue.hpp>

#include <bit>
#include <utility>

namespace troupe {

recorder::recorder(const job_queue& queue, std::size_t events_per_ring)
  : queue_(queue), events_per_ring_(std::bit_ceil(events_per_ring)),
    first_ticks_(ticks()), first_ns_(now_ns()) {}

void recorder::replace_request(trace_level before, trace_level now) {
  std::lock_guard guard{mutex_};
  if (now != trace_level::off && rings_.empty()) {
    ring_list made;
    for (std::size_t i = 0; i <= queue_.workers(); ++i)
      made.push_back(std::make_unique<event_ring>(events_per_ring_));
    rings_ = std::move(made);
    has_rings_.store(true, std::memory_order_release);
  }
  const auto count = [this](trace_level level) -> std::size_t& {
    return requests_[static_cast<std::size_t>(level)];
  };
  if (before != trace_level::off)
    --count(before);
  if (now != trace_level::off)
    ++count(now);
  auto highest = trace_level::off;
  for (auto level :
       {trace_level::steps, trace_level::ops, trace_level::messages})
    if (count(level) > 0)
      highest = level;
  level_.store(highest, std::memory_order_release);
}

std::span<const std::unique_ptr<event_ring>> recorder::rings() const noexcept {
  if (!has_rings_.load(std::memory_order_acquire))
    return {};
  return rings_;
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

double recorder::ns_per_tick() const noexcept {
  return static_cast<double>(now_ns() - first_ns_)
         / static_cast<double>(ticks() - first_ticks_);
}

level_request::level_request(recorder& of, trace_level level) : of_(of) {
  change(level);
}

level_request::~level_request() {
  change(trace_level::off);
}

void level_request::change(trace_level level) {
  of_.replace_request(level_, level);
  level_ = level;
}

} // namespace troupe
