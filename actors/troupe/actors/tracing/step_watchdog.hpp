// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/data_wait.hpp>
#include <troupe/actors/tracing/usual_time.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// What a watchdog cannot see in an executor.
struct watchdog_context {
  /// Says when the application waits for data; outlives the watchdog. Null: the
  /// application does not say so.
  const data_wait* data = nullptr;
  /// The number of this process, if there are several.
  std::optional<std::size_t> rank = {};
  /// How long an op handle usually takes; called on the watchdog's thread, must
  /// not throw. Null: the application does not know.
  std::function<usual_time(handle_id)> usual = {};
  /// Called behind `tell` when a step does not go on, or does not begin,
  /// although nobody holds the run up: not for a pause, single steps, slow
  /// motion (`run_pace`), or the end of what was told. On the watchdog's
  /// thread; must not throw. Null: nobody wants to know.
  std::function<void()> stalled = {};
};

/// Notices that a step does not go on, and tells why: the chain of handles that
/// wait for each other (`executor::why`), of a long one its ends, and the cause
/// in words: a slow op, a slow feed, a slow link, a stuck worker, a lost
/// message; and if threads were kept from the cores.
///
/// It looks at the oldest running step, 16 times per limit and at least once a
/// second. It tells once per step that takes too long, after the limit and at
/// most two looks later, and once more when that step has ended. A step of
/// which it has told that it is in slow motion is told again if it does not go
/// on all the same. Times are counted from the first look at the step. A look
/// reads counters of the running graph: a thousand a second change no step's
/// time measurably.
///
/// Thread rule: made and destroyed on any thread, within the life of the
/// executor (`executor_options::attach` does both).
class step_watchdog {
public:
  /// @param limit how long a step may take
  /// @param tell called with a text of one line, on the watchdog's thread; must
  ///   not throw
  step_watchdog(const executor& watched, std::chrono::milliseconds limit,
                std::function<void(const std::string&)> tell,
                watchdog_context about = {});
  /// Tells that the watched step has ended, if it has. Afterwards nothing is
  /// told.
  ~step_watchdog();
  step_watchdog(const step_watchdog&) = delete;
  step_watchdog& operator=(const step_watchdog&) = delete;

private:
  class loop;
  std::unique_ptr<loop> loop_;
};

} // namespace troupe
