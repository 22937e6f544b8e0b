// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/mailbox.hpp>
#include <troupe/actors/engine/op_lists.hpp>
#include <troupe/actors/engine/pending_launch.hpp>
#include <troupe/actors/engine/port.hpp>
#include <troupe/actors/engine/recorded_results.hpp>
#include <troupe/actors/engine/step_state.hpp>
#include <troupe/actors/wait_chain.hpp>
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {
class recorder;
} // namespace troupe

namespace troupe::actors {

class busy_workers;
class disturbance;
class engine;
class idle_workers;
class observed;
class op_task;
class storage_places;
class stream_actor;
struct graph_context;

/// A stream while a graph runs.
struct engine_stream {
  /// Sends the start messages of the stream's handles for all admitted steps.
  /// It runs on the stream itself, so that the stream's mailboxes can count
  /// without atomic operations. It is never queued twice, even with several
  /// steps in flight.
  class start_op final : public ready_op {
  public:
    explicit start_op(engine_stream& on) : on_(on) {}
    /// Called when the next step has been admitted.
    void admit();
    void run(worker& on) override;
    /// The next step to start is another one. No start is due.
    void go_on_with(step_id next) noexcept { next_ = next; }
    /// True if a step that has been admitted is not started yet. Relaxed: for
    /// observers.
    bool is_due() const noexcept {
      return waiting_.load(std::memory_order_relaxed) > 0;
    }

  private:
    engine_stream& on_;
    /// Number of admitted steps that have not been started. The thread that
    /// increments it from 0 submits the op. acq_rel publishes the step's state
    /// and makes `next_` visible to the next run.
    std::atomic<std::uint32_t> waiting_{0};
    step_id next_ = 0; // the next step to start; owned by the running op
  };

  engine_stream(engine& engine, stream_actor& on)
    : of(engine), actor(on), start(*this) {}

  engine& of;
  stream_actor& actor;
  std::vector<target> starts; ///< receivers of a step's start messages
  /// Receivers of messages that steps before the first one would have sent, and
  /// the distance of each message.
  std::vector<std::pair<target, std::uint32_t>> first_starts;
  start_op start;
};

/// Sends the messages of a graph according to its wiring plan, and runs its
/// ops. Every op handle and every variable handle is a mailbox here.
///
/// The course of a step: start messages of each stream -> mailboxes count
/// messages -> a mailbox opens: a variable notifies its readers, an op goes to
/// its stream -> the op's task runs -> temporaries are released -> variables
/// and ops of this step are notified -> those of later steps are notified. The
/// step's end is a mailbox too. It waits for the handles that the plan names,
/// and for the end of the previous step.
///
/// Errors: a failing op makes its step fail. Ops of the step that have not run
/// yet skip their work but still send their messages, so that the step ends
/// soon and all counters stay correct.
///
/// Thread rule: construction and `start` on the executor's thread. The messages
/// of a stream's handles are sent by the stream's drains, or through ports.
/// `deliver` and const functions from any thread.
class engine {
public:
  struct parts {
    graph_context* context = nullptr; ///< with graph and steps set
    const graph::wiring_plan* plan = nullptr;
    /// Number of steps whose messages can be in flight at the same time.
    std::uint32_t steps_told = 1;
    std::span<stream_actor* const> streams; ///< by number in the plan
    /// The plan's `expected_order`; mailboxes are laid out in this order.
    std::span<const handle_id> order;
    /// By op: its task, which outlives the engine; null for ops in other
    /// processes.
    std::vector<op_task*> tasks;
    /// By storage: its number in `places`; unused for persistable variables.
    std::vector<std::uint32_t> temporary_of;
    storage_places* places = nullptr;
    std::size_t workers = 1;
    recorder* trace = nullptr;       ///< outlives the engine
    idle_workers* helpers = nullptr; ///< told the current op, for the trace
    /// Told what each worker runs; outlives the engine. Null: nobody asks.
    busy_workers* busy = nullptr;
    /// The form of each message except starts; empty: counters.
    std::function<port::form(const graph::wired_edge&)> form_of;
    disturbance* disturbs = nullptr; ///< for tests; outlives the engine
  };

  explicit engine(parts p);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Sends the messages that begin an admitted step.
  void start(step_state& step);
  /// Lets the step with number `as` be the next one, in place of number `next`.
  /// No step may be running, and no message under way.
  void renumber(step_id next, step_id as);
  /// Takes a CAF message from `sender`, sent through port `port` to handle
  /// `to`. Returns false and ignores the message if this engine did not send
  /// it.
  bool deliver(handle_id to, std::uint32_t port, step_id step,
               const caf::strong_actor_ptr& sender);
  /// Sets the receivers' addresses of ports that send CAF messages. Also sets
  /// their sender: an actor whose address nobody else has.
  void connect(const std::function<caf::strong_actor_ptr(handle_id)>& address,
               caf::strong_actor_ptr sender);
  /// Clears these addresses. They hold actors that hold the engine.
  void disconnect() noexcept;

  /// True if a handle is in this process.
  bool has(handle_id id) const noexcept {
    return target_of_[id].what() != target::kind::port;
  }
  std::size_t messages_per_step() const noexcept { return messages_; }

  struct handle_state {
    progress how_far = progress::waits;
    std::uint32_t messages = 0;    ///< missing messages
    std::uint32_t of_messages = 0; ///< messages per step
    std::size_t worker = 0;        ///< the worker that runs it
  };
  /// State of a handle of this process in a running step.
  handle_state state_of(handle_id id, const step_state& step) const;
  /// How many messages a handle of this process gets in a step.
  std::uint32_t messages_to(handle_id id) const noexcept {
    return expected_of(target_of_[id]);
  }
  /// The op that a worker runs now, if any.
  struct running_op {
    handle_id op = no_handle;
    /// null: the op is done and is sending messages
    const step_state* step = nullptr;
  };
  running_op runs_on(std::size_t worker) const noexcept;
  std::size_t workers() const noexcept { return workers_; }
  /// True if no worker has yet sent the start messages of a stream for a step
  /// that has been admitted.
  bool has_due_start(std::size_t stream) const noexcept {
    return streams_[stream].start.is_due();
  }
  /// Sends the message that a test has withheld.
  void let_go();

private:
  struct told {
    std::span<const std::uint32_t> now;
    std::span<const std::uint32_t> later; ///< pairs of target and distance
  };

  friend class engine_builder;
  friend class op_mailbox;
  friend class pending_launch;
  friend struct engine_stream;

  // Layout of the head of a variable's lists in `lists_`; for an op's, see
  // `op_lists`.
  enum variable_head : std::uint32_t {
    variable_told_now,
    variable_told_later,
    variable_head_size
  };

  void run(op_mailbox& op, worker& on);
  void run_noted(op_mailbox& op, worker& on);
  void run_on(op_mailbox& op, worker& on);
  void run_observed(op_mailbox& op, worker& on);
  void record_begin(const op_mailbox& op, handle_id id, step_id step,
                    observed& o);
  std::uint64_t bytes_to_merge(std::size_t index, step_id step) const noexcept;
  void record_end(const op_mailbox& op, handle_id id, step_id step,
                  const observed& o);
  /// For an op whose launch can be pending, when its stream begins to run it:
  /// only then are the values there that a collective merges. Any thread.
  void record_late_begin(const op_mailbox& op, step_id step);
  /// For an op whose launch was pending. Any thread.
  void record_late_results(const op_mailbox& op, step_id step);
  template <class Record>
  void record_results(const op_mailbox& op, step_id step, Record record) const;
  std::size_t bytes_at(std::uint32_t temporary, step_id step) const noexcept;
  void record_taken(const op_mailbox& op, step_id step,
                    const observed& o) const;
  void record_arrival(const op_mailbox& at, handle_id from, step_id step,
                      const observed& o);
  void record_freed(handle_id op, std::uint32_t temporary, step_id step,
                    std::uint32_t slot) noexcept;
  bool is_watched() const noexcept;
  template <class Observer>
  void run_with(op_mailbox& op, Observer& o);
  template <class Observer>
  void run_to_end(op_mailbox& op, step_state& step, Observer& o);
  template <class Observer>
  void end(op_mailbox& op, const op_lists& lists, step_id step, Observer& o);
  template <class Observer>
  void end_rare(op_mailbox& op, step_id step, Observer& o);
  launch_status execute(op_task& task, step_state& step, const op_mailbox& op,
                        completion& whole);
  /// @tparam Looks true if released memory is recorded
  template <bool Looks>
  void give_back(const op_mailbox& op, const op_lists& lists, step_id step);
  template <bool Looks>
  void give_back_shared(const op_mailbox& op, std::uint32_t number,
                        step_id step, std::uint32_t slot);
  template <bool Looks>
  void give_back_delayed(const op_mailbox& op,
                         std::span<const std::uint32_t> pairs, step_id step);

  template <class Observer>
  void launch(op_mailbox& op, step_state& step, Observer& o);
  void wait_for_tickets(const pending_op& op, const step_state& step);
  ticket launch_by_ticket(pending_launch& launch);
  void launch_later(pending_launch& launch);
  launch_status skip_unlaunched(pending_launch& launch);
  template <class Observer>
  void complete(pending_launch& launch, Observer& o);
  void tell_completion_shuffled(const pending_op& op, step_id step,
                                observed& o);

  /// Calls `work(observer)` with an active observer if recording or perturbing.
  template <class Work>
  void observe(std::uint16_t worker, Work work);
  /// The part of a step that its messages need.
  struct told_step {
    step_id id;
    std::uint32_t counter; ///< of mailboxes
  };
  told_step told_in(step_id step) const noexcept {
    return {step, which_counter(step)};
  }
  template <class Observer>
  void start_stream(const engine_stream& s, step_id step, Observer& o);
  void start_shuffled(const engine_stream& s, step_id step, observed& o);
  template <class Observer>
  void tell_all(const told& targets, told_step in, handle_id from, Observer& o);
  void tell_shuffled(const told& targets, step_id step, handle_id from,
                     observed& o);
  template <class Observer>
  void tell_later(std::span<const std::uint32_t> pairs, step_id step,
                  handle_id from, Observer& o);
  template <class Observer>
  void tell(target to, told_step in, handle_id from, Observer& o);
  template <class Observer>
  void arrive(target to, told_step in, handle_id from, Observer& o);
  void tell_observed(target to, told_step in, handle_id from, observed& o);
  /// Counts a message; true if it was the last.
  template <class Observer, class Mailbox>
  bool counts_last(const Mailbox& to, mailbox_counter& counter, told_step in);
  template <class Observer>
  void tell_variable(variable_mailbox& to, told_step in, Observer& o);
  template <class Observer>
  void tell_few(const variable_mailbox& m, told_step in, Observer& o);
  template <class Observer>
  void tell_other(target to, told_step in, Observer& o);
  template <class Observer>
  void open_variable(const variable_mailbox& m, told_step in, Observer& o);
  template <class Observer>
  void tell_op(op_mailbox& to, told_step in, const Observer& o);
  template <class Observer>
  void open_end(const variable_mailbox& end, told_step in, Observer& o);
  void send(const port& p, step_id step);

  op_lists lists_of(const op_mailbox& op) const noexcept {
    return op_lists::read(&lists_[op.lists]);
  }
  told told_by(const variable_mailbox& m) const;
  void prefetch_upcoming(const op_mailbox& op) const noexcept;
  std::uint32_t which_counter(step_id step) const noexcept {
    return static_cast<std::uint32_t>(step) & counter_mask_;
  }
  std::uint32_t slot_of(step_id step) const noexcept {
    return static_cast<std::uint32_t>(step) & slot_mask_;
  }
  /// The round that a mailbox's counter holds while it waits for messages of a
  /// step.
  std::uint8_t round_of(step_id step) const noexcept {
    return static_cast<std::uint8_t>(step / (counter_mask_ + std::uint64_t{1}));
  }
  handle_id handle_of(const op_mailbox& m) const noexcept {
    return op_handles_[ops_.index_of(m)];
  }
  handle_id handle_of(const variable_mailbox& m) const noexcept {
    return variable_handles_[variables_.index_of(m)];
  }
  handle_id receiver_of(target to) const noexcept;
  std::uint32_t expected_of(target to) const noexcept;
  mailbox_counter& counter_of(target to, step_id step) const noexcept;

  /// The op that a worker runs, on its own cache line. Relaxed, because only
  /// observers read it from other threads.
  struct alignas(cache_line) current_op {
    std::atomic<const op_mailbox*> op{nullptr};
  };

  // Members that every op's run reads come first.
  op_mailboxes ops_;
  variable_mailboxes variables_;
  std::vector<std::uint32_t> lists_;
  std::vector<step_state*> steps_; // by slot
  std::uint32_t counter_mask_;
  std::uint32_t slot_mask_;
  /// An op's mailbox gets its first message while the op this many positions
  /// before it runs, or later.
  std::uint32_t message_lead_ = 0;
  std::unique_ptr<current_op[]> running_; // by worker
  busy_workers* busy_;                    // null: nobody asks
  recorder& trace_;
  disturbance* disturbs_;
  idle_workers* helpers_;
  graph_context& context_;
  storage_places& places_;
  shared_releases shared_releases_;
  std::vector<port> ports_;
  caf::strong_actor_ptr sender_; // sender of messages through ports
  std::vector<pending_op> pending_ops_;
  std::vector<std::uint32_t> pending_of_;   // by op; empty: no pending ops
  std::vector<handle_id> op_handles_;       // by mailbox
  std::vector<handle_id> variable_handles_; // by mailbox; `no_handle`: an end
  std::vector<target> target_of_; // by handle; a port if in another process
  // For the recorder only.
  recorded_results results_;
  std::vector<handle_id> variable_of_; // by temporary: its first version
  std::vector<int> device_of_;         // by handle; of a variable, -1 for an op
  std::unique_ptr<std::uint16_t[]>
    ready_on_; // by mailbox: the worker, while recording
  std::deque<engine_stream> streams_;
  std::size_t workers_;
  std::size_t messages_ = 0;
  std::uint32_t largest_distance_ = 0;
  variable_mailbox* end_ = nullptr; // the step's end; null: nothing runs here
  bool end_waits_for_end_before_ = false;
};

} // namespace troupe::actors
