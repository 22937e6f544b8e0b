// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/disturbance.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/base/spin.hpp>

#include <cstdint>

namespace troupe::actors {

/// The observer of a run that nobody observes: does nothing.
struct unobserved {
  static constexpr bool looks = false;
};

/// Observes an op's run and its messages: the recorder, a test's disturbance,
/// or both.
class observed {
public:
  static constexpr bool looks = true;

  observed(recorder& trace, disturbance* disturbs,
           std::uint16_t worker) noexcept
    : trace_(trace), level_(trace.level()), disturbs_(disturbs),
      worker_(worker),
      ring_(level_ == trace_level::off ? nullptr : trace.ring_of(worker)) {}

  disturbance* disturbs() const noexcept { return disturbs_; }
  /// True if messages are sent in random order.
  bool shuffles() const noexcept { return disturbs_ && disturbs_->shuffles(); }

  /// Sets the time of the following events. Messages of one op share one time.
  void look_at_clock() noexcept {
    if (level_ >= trace_level::ops)
      time_ = ticks();
  }
  void record(event_kind kind, handle_id op, step_id step,
              std::uint64_t amount = 0,
              handle_id to = no_handle) const noexcept {
    if (level_ >= trace_level::ops)
      write(kind, op, step, amount, to);
  }
  /// False if the message is withheld.
  bool sends(handle_id from, handle_id to, step_id step) const noexcept {
    if (disturbs_ && disturbs_->withholds({from, to, step}))
      return false;
    if (level_ >= trace_level::messages)
      write(event_kind::message, from, step, 0, to);
    return true;
  }
  std::uint16_t worker() const noexcept { return worker_; }

  /// Bytes of temporaries that the op is about to write in place.
  std::uint64_t held_in_place = 0;

private:
  void write(event_kind kind, handle_id from, step_id step,
             std::uint64_t amount, handle_id to) const noexcept {
    if (ring_) [[likely]]
      ring_->write({time_, amount, from, to, static_cast<std::uint32_t>(step),
                    worker_, kind});
    else // another thread than a worker
      trace_.record(kind, worker_, from, to, step, amount, time_);
  }

  recorder& trace_;
  trace_level level_;
  disturbance* disturbs_;
  std::uint16_t worker_;
  event_ring* ring_; ///< of the worker, so that an event need not look it up
  std::uint64_t time_ = 0;
};

} // namespace troupe::actors
