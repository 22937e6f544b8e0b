// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/dashboard/picture/collective_log.hpp>
#include <troupe/dashboard/picture/slice_log.hpp>
#include <troupe/trace/analysis/actor_account.hpp>
#include <troupe/trace/analysis/memory_account.hpp>
#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::dashboard {

/// State of a handle in the newest step that has reached it.
enum class handle_state : std::uint8_t {
  waits,
  is_ready,  ///< all messages are there; the op has yet to begin
  runs,      ///< runs, or its launch is pending
  is_done,   ///< has run, or the variable is ready
  elsewhere, ///< in another process
};

/// What a step was, as far as it is known.
struct step_record {
  std::uint32_t step = 0;
  std::optional<double> ms = {}; ///< none while the step is under way
  std::optional<double> loss = {};
  /// As the training loop told it: of this step alone. Of steps in flight
  /// together, one can end right after the other, so it says little; 0: no
  /// time was measured.
  std::optional<double> own_samples_per_s = {};
  std::optional<double> learning_rate = {};
  /// Over the last ten steps, this one included; by the picture.
  std::optional<double> samples_per_s = {};

  /// True if the loss is known, and not a number.
  bool has_nan() const noexcept;
};

/// What a graph does now: events added up, in the order in which they happened.
/// The same for a live run and for the events of a file.
///
/// At level `ops` there are no messages, so ops are never ready, and a variable
/// is ready when the op that writes it has run. At level `steps` only steps are
/// known.
///
/// Thread rule: one thread at a time.
class live_picture {
public:
  static constexpr std::size_t kept_slices = 20'000;
  static constexpr std::size_t kept_steps = 10'000;
  /// Of how many steps `step_record::samples_per_s` is the mean.
  static constexpr std::size_t steps_of_speed = 10;

  /// @param processes of which the events are
  /// @param workers as many as these processes have
  live_picture(trace::graph_info graph,
               const std::vector<std::size_t>& processes, std::size_t workers);
  live_picture(const live_picture&) = delete; // the account refers to the graph
  live_picture& operator=(const live_picture&) = delete;

  /// Tells of events that are yet to come, of a run that is in a file: so feeds
  /// hold memory from the first step on (memory_account).
  void expect(std::span<const trace_event> events) { memory_.expect(events); }
  /// Adds events, ordered by time. Times are in nanoseconds since the run's
  /// begin.
  void add(std::span<const trace_event> events);
  /// Adds what is new of the application's actors.
  void add(const actor_table::changes& found);
  /// Adds what the training loop knows of a step that has ended. Of its time,
  /// events know better.
  void add(const step_record& known);

  const trace::graph_info& graph() const noexcept { return graph_; }
  std::size_t workers() const noexcept { return workers_; }
  /// Whether the device is in a process whose events these are.
  bool has_device(std::size_t device) const { return here_[device]; }
  /// Whether the handle is.
  bool has(handle_id id) const { return here_[graph_.handles[id].device]; }

  // By handle.
  std::span<const handle_state> states() const noexcept { return states_; }
  /// Messages that have arrived in the handle's step.
  std::span<const std::uint16_t> arrived() const noexcept { return arrived_; }
  /// A worker has taken the op, and is to begin it later (`run_pace`): until
  /// its begin, too, it is shown as running.
  void take_delayed(handle_id op, std::uint32_t step);
  /// How often an op has run, or a variable was ready.
  std::span<const std::uint32_t> runs() const noexcept { return runs_; }
  /// By edge of the graph: messages so far.
  std::span<const std::uint32_t> edge_messages() const noexcept {
    return edge_messages_;
  }
  /// Those of the events; `messages_per_step` per step that ended if no event
  /// is missing.
  std::uint64_t messages() const noexcept { return messages_; }
  /// How many messages a handle waits for in a step. If the trace does not say
  /// it: one per edge, or the step's begin if there is no edge.
  std::uint32_t needs(handle_id id) const { return needs_[id]; }
  /// The same, of all handles of this process.
  std::uint64_t messages_per_step() const noexcept;

  /// Whether anything was recorded of ops: before that, nothing is known of
  /// memory, workers and collectives.
  bool has_ops() const noexcept { return has_ops_; }

  slice_log& slices() noexcept { return slices_; }
  const slice_log& slices() const noexcept { return slices_; }
  collective_log& collectives() noexcept { return collectives_; }
  const collective_log& collectives() const noexcept { return collectives_; }
  const trace::memory_account& memory() const noexcept { return memory_; }
  /// The application's actors, by number.
  const std::vector<recorded_actor>& actors() const noexcept { return actors_; }
  /// Types of messages to them, by number.
  const std::vector<std::string>& message_types() const noexcept {
    return message_types_;
  }
  /// What they have done, as far as events tell.
  const trace::actor_account& activity() const noexcept { return activity_; }
  /// The most bytes of a device so far.
  std::uint64_t peak_bytes(std::size_t device) const { return peaks_[device]; }

  /// The newest steps, by number.
  const std::deque<step_record>& steps() const noexcept { return steps_; }
  /// How many steps there have been, kept or not.
  std::uint64_t steps_seen() const noexcept { return steps_seen_; }
  /// The first step whose loss is not a number, kept or not, and how many there
  /// have been.
  std::optional<std::uint32_t> first_nan_step() const noexcept {
    return first_nan_;
  }
  std::uint64_t nan_steps() const noexcept { return nan_steps_; }
  /// The newest step that has begun.
  std::optional<std::uint32_t> newest_step() const noexcept { return newest_; }
  std::uint64_t steps_ended() const noexcept { return steps_ended_; }
  /// The times (`step_record::ms`) of all of these, in seconds.
  double step_seconds() const noexcept { return step_seconds_; }
  /// Steps that have begun and not ended.
  std::size_t steps_under_way() const noexcept { return open_.size(); }
  /// The op that made a step fail; empty if none did.
  const std::string& failure() const noexcept { return failure_; }
  /// Time of the last event.
  std::uint64_t last_ns() const noexcept { return last_ns_; }

private:
  struct open_step {
    std::uint32_t step = 0;
    std::uint64_t begin = 0;
  };

  /// Messages of a step that had not begun.
  struct early_messages {
    std::uint32_t step = 0;
    std::uint16_t messages = 0;
  };

  void add(const trace_event& e);
  void add_message(const trace_event& e);
  void begin_run(const trace_event& e);
  void run_in(handle_id op, std::uint32_t step);
  void end_run(const trace_event& e);
  void begin_step(const trace_event& e);
  void end_step(const trace_event& e);
  bool is_current(const trace_event& e) const;
  void reach(handle_id id, std::uint32_t step);
  void become_ready(handle_id id);
  step_record& record_of(std::uint32_t step);
  void measure_speeds(std::uint32_t from_step);
  std::optional<double> mean_speed(std::size_t at) const;
  std::optional<std::size_t> edge_between(handle_id from, handle_id to) const;

  trace::graph_info graph_;
  std::size_t workers_;
  std::vector<bool> here_; // by device
  std::vector<std::uint32_t> needs_;
  // Edges by sender: those of `h` are edges_from_[first_edge_[h]] and
  // following.
  std::vector<std::uint32_t> first_edge_, edges_from_;

  std::vector<handle_state> states_;
  std::vector<std::uint16_t> arrived_;
  std::vector<std::uint32_t> runs_, edge_messages_;
  std::vector<std::uint32_t> step_of_; // plus 1; 0: none has reached it
  std::vector<early_messages> early_;
  std::uint64_t messages_ = 0;
  bool has_messages_ = false;
  bool has_ops_ = false;

  slice_log slices_;
  collective_log collectives_;
  trace::memory_account memory_;
  std::vector<std::uint64_t> peaks_;
  std::vector<recorded_actor> actors_;
  std::vector<std::string> message_types_;
  trace::actor_account activity_;

  std::deque<step_record> steps_;
  std::uint64_t steps_seen_ = 0;
  std::optional<std::uint32_t> first_nan_;
  std::uint64_t nan_steps_ = 0;
  std::vector<open_step> open_;
  std::optional<std::uint32_t> newest_;
  std::uint64_t steps_ended_ = 0;
  double step_seconds_ = 0;
  std::string failure_;
  std::uint64_t last_ns_ = 0;
};

} // namespace troupe::dashboard
