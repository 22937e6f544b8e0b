// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/wait_chain.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/dashboard/picture/board_state.hpp>
#include <troupe/trace/trace.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe::dashboard {

class live_picture;

/// What whoever looks wants a run to do.
enum class command : std::uint8_t {
  pause,  ///< no further step begins
  resume, ///< also from a single step
  step,   ///< one more step, then pause
  slow,   ///< each op begins so much later
  rewind, ///< plays from the begin; of a recorded run
  dump,   ///< writes what the flight recorder holds; of a live run
};

/// Throws error(invalid_argument) for a word that is no command.
command parse_command(std::string_view word);

/// Where the events of a picture come from: a run, or a file.
///
/// Thread rule: one thread at a time.
class event_source {
public:
  virtual ~event_source() = default;

  /// The process and its graph; constant. Its events, if it has any, are those
  /// that `take` will give.
  virtual const trace::process_trace& head() const = 0;
  /// The ranks whose events it gives, those whose workers come first first.
  virtual std::vector<trace::run_info> ranks() const { return {head().run}; }
  virtual bool is_recorded() const noexcept = 0;
  /// Grows when all events come again from the beginning.
  virtual std::uint64_t generation() const noexcept = 0;

  /// Whether somebody looks: if nobody does, little needs to be recorded.
  virtual void watch(bool by_somebody) = 0;
  /// The events since the last call, ordered by time: nanoseconds since the
  /// begin of the run.
  virtual std::vector<trace_event> take() = 0;
  /// What is new of the application's actors since the last call; all of it
  /// when the generation has grown. After `take`, it names all actors of the
  /// events. Ends are on the clock of the events.
  virtual actor_table::changes take_actors() = 0;
  /// The time now, on the clock of the events.
  virtual std::uint64_t now_ns() const = 0;
  /// Events that are missing in what `take` returned.
  virtual std::uint64_t lost() const = 0;
  virtual trace_level level() const = 0;
  /// The state by what the source knows; `idle` if the picture knows more.
  virtual run_state state() const = 0;
  virtual std::chrono::milliseconds op_delay() const = 0;
  /// The ops that are delayed now. None of a file: its ops are delayed with
  /// their events.
  virtual std::vector<delayed_op> delayed_ops() const { return {}; }

  /// Throws error(not_found) for handles that the process does not have.
  virtual actors::wait_chain why(const live_picture& picture,
                                 std::optional<handle_id> id) const = 0;
  /// The collectives that are under way, by what the run itself knows of its
  /// ranks: none if it is no more.
  virtual std::vector<actors::collective_wait> collectives() const {
    return {};
  }
  /// Returns the file that `command::dump` has written; otherwise nothing.
  /// @param delay of `command::slow`
  /// Throws error(invalid_argument) if the source cannot do it, and
  /// error(io_failure) if a file cannot be written.
  virtual std::optional<std::filesystem::path>
  obey(command what, std::chrono::milliseconds delay) = 0;
};

} // namespace troupe::dashboard
