// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/mailbox.hpp>
#include <troupe/actors/engine/pending_launch.hpp>
#include <troupe/actors/engine/port.hpp>
#include <troupe/actors/engine/step_state.hpp>
#include <troupe/actors/plan/wiring_plan.hpp>
#include <troupe/actors/wait_chain.hpp>

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
  /// Sends the start messages of the stream's handles for all steps that have
  /// been admitted: on the stream itself, so that its mailboxes can count
  /// plainly. In no queue twice, however many steps are in flight.
  class start_op final : public ready_op {
  public:
    explicit start_op(engine_stream& on) : on_(on) {}
    /// One more step, the one behind the last, has been admitted.
    void admit();
    void run(worker& on) override;

  private:
    engine_stream& on_;
    /// Steps that have been admitted and not started. Who adds the first one
    /// submits the op; who takes the last one away leaves it to others.
    /// acq_rel: a step's state comes along, and the next run sees `next_`.
    std::atomic<std::uint32_t> waiting_{0};
    step_id next_ = 0; // since the first step; of who runs the op
  };

  engine_stream(engine& engine, stream_actor& on)
    : of(engine), actor(on), start(*this) {}

  engine& of;
  stream_actor& actor;
  std::vector<target> starts; ///< what a step's start tells
  /// What steps before the first would have told, and how much later.
  std::vector<std::pair<target, std::uint32_t>> first_starts;
  start_op start;
};

/// Sends the messages of a graph as its wiring plan says, and runs its ops:
/// every op and every variable handle is a mailbox here, in every run.
///
/// A step in life: start (each stream tells its first handles) -> tell (x n) ->
/// open: a variable tells its readers, an op goes to its stream -> run: the
/// task -> give temporaries back -> tell variables and ops of this step -> tell
/// those of later steps. The step's end is a mailbox too: it waits for what the
/// plan says, and for the end of the step before.
///
/// Errors: an op that fails makes its step fail; ops of the step that have not
/// run then skip their work and send their messages all the same, so that the
/// step ends soon and all counters stay whole.
///
/// Thread rule: construction and `start` by the executor's thread; all messages
/// of a stream's handles are sent by its drains, or along ports; `deliver` and
/// what is const from any thread.
class engine {
public:
  struct parts {
    graph_context* context = nullptr; ///< with its graph and steps
    const wiring_plan* plan = nullptr;
    /// Steps whose messages may be under way at the same time.
    std::uint32_t steps_told = 1;
    std::span<stream_actor* const> streams; ///< by number in the plan
    /// The plan's `expected_order`, in which mailboxes lie.
    std::span<const handle_id> order;
    /// By op: its task, which outlives the engine; null for ops elsewhere.
    std::vector<op_task*> tasks;
    /// By storage: its number in `places`; of persistable variables any.
    std::vector<std::uint32_t> temporary_of;
    storage_places* places = nullptr;
    std::size_t workers = 1;
    recorder* trace = nullptr;       ///< outlives the engine
    idle_workers* helpers = nullptr; ///< learn whom they help, for the trace
    /// The form of each message but starts; empty: counters.
    std::function<port::form(const wired_edge&)> form_of;
    disturbance* disturbs = nullptr; ///< a test's; outlives the engine
  };

  explicit engine(parts p);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Sends the messages that begin a step, which has been admitted.
  void start(step_state& step);
  /// Takes a message that came as one of CAF's from `sender`: along port number
  /// `port`, to handle `to`. False, and nothing happens, if this engine has not
  /// sent it.
  bool deliver(handle_id to, std::uint32_t port, step_id step,
               const caf::strong_actor_ptr& sender);
  /// Gives ports that are CAF messages the addresses of their receivers, and
  /// the name that they are sent in: an actor whose address nobody else has.
  void connect(const std::function<caf::strong_actor_ptr(handle_id)>& address,
               caf::strong_actor_ptr sender);
  /// Takes them away: they hold actors that hold the engine.
  void disconnect() noexcept;

  /// Whether a handle is in this process.
  bool has(handle_id id) const noexcept {
    return target_of_[id].what() != target::kind::port;
  }
  std::size_t messages_per_step() const noexcept { return messages_; }

  struct handle_state {
    progress how_far = progress::waits;
    std::uint32_t messages = 0; ///< still to come
    std::uint32_t of_messages = 0;
    std::size_t worker = 0; ///< that runs it
  };
  /// How far a handle is with a step that is under way; of this process.
  handle_state state_of(handle_id id, const step_state& step) const;
  /// What a worker runs now, if anything.
  struct running_op {
    handle_id op = no_handle;
    const step_state* step = nullptr; ///< null: it tells others that it is done
  };
  running_op runs_on(std::size_t worker) const noexcept;
  std::size_t workers() const noexcept { return workers_; }
  const disturbance* disturbs() const noexcept { return disturbs_; }
  /// Sends the message that a test's disturbance has withheld.
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

  // How an op's lists begin, in `lists_`.
  enum op_head : std::uint32_t {
    own_places,     ///< temporaries that it alone gives back
    shared_places,  ///< shared releases of its step
    delayed_places, ///< shared releases, and of how many steps before: pairs
    op_told_now,    ///< targets in its step
    op_told_later,  ///< targets in later steps: pairs
    op_head_size
  };
  enum variable_head : std::uint32_t {
    variable_told_now,
    variable_told_later,
    variable_head_size
  };

  void run(op_mailbox& op, worker& on);
  void run_observed(op_mailbox& op, worker& on);
  void record_begin(const op_mailbox& op, step_id step, const observed& o);
  void record_end(const op_mailbox& op, step_id step, const observed& o);
  void record_arrival(const op_mailbox& at, handle_id from, step_id step,
                      const observed& o);
  void record_freed(handle_id op, std::uint32_t temporary, step_id step,
                    std::uint32_t slot) noexcept;
  bool is_watched() const noexcept;
  template <class Observer>
  void run_with(op_mailbox& op, Observer& o);
  template <class Observer>
  void run_to_end(op_mailbox& op, step_state& step, Observer& o);
  launch_status execute(op_task& task, step_state& step, const op_mailbox& op,
                        completion& whole);
  /// @tparam Looks whether memory that is given back is recorded
  template <bool Looks>
  void give_back(const op_mailbox& op, step_id step);
  template <bool Looks>
  void give_back_shared(const op_mailbox& op, std::uint32_t number,
                        step_id step, std::uint32_t slot);
  template <bool Looks>
  void give_back_delayed(const op_mailbox& op,
                         std::span<const std::uint32_t> pairs, step_id step);

  template <class Observer>
  void launch(op_mailbox& op, step_state& step, Observer& o);
  void wait_for_tickets(const pending_op& op, step_id step);
  ticket launch_by_ticket(pending_launch& launch);
  void launch_later(pending_launch& launch);
  template <class Observer>
  void complete(pending_launch& launch, Observer& o);

  /// Calls `work(observer)` with one that looks if anybody does.
  template <class Work>
  void observe(std::uint16_t worker, Work work);
  /// A step as its messages know it.
  struct told_step {
    step_id id;
    std::uint32_t counter; ///< of mailboxes
  };
  told_step told_in(step_id step) const noexcept {
    return {step, which_counter(step)};
  }
  template <class Observer>
  void start_stream(const engine_stream& s, step_id step, Observer& o);
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
  /// Counts a message down; true if it was the last.
  template <class Mailbox>
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

  told told_by(const op_mailbox& op) const;
  told told_by(const variable_mailbox& m) const;
  void prefetch_upcoming(const op_mailbox& op) const noexcept;
  std::uint32_t which_counter(step_id step) const noexcept {
    return static_cast<std::uint32_t>(step) & counter_mask_;
  }
  std::uint32_t slot_of(step_id step) const noexcept {
    return static_cast<std::uint32_t>(step) & slot_mask_;
  }
  /// What the counter of a mailbox says while it waits for messages of a step.
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

  /// What a worker runs, on a cache line of its own. Relaxed: others only look.
  struct alignas(cache_line) current_op {
    std::atomic<const op_mailbox*> op{nullptr};
  };

  // What every op's run reads comes first.
  op_mailboxes ops_;
  variable_mailboxes variables_;
  std::vector<std::uint32_t> lists_;
  std::vector<step_state*> steps_; // by slot
  std::uint32_t counter_mask_;
  std::uint32_t slot_mask_;
  std::unique_ptr<current_op[]> running_; // by worker
  recorder& trace_;
  disturbance* disturbs_;
  idle_workers* helpers_;
  graph_context& context_;
  storage_places& places_;
  shared_releases shared_releases_;
  std::vector<port> ports_;
  caf::strong_actor_ptr sender_; // of what goes along ports
  std::vector<pending_op> pending_ops_;
  std::vector<std::uint32_t> pending_of_;   // by op; empty: none is
  std::vector<handle_id> op_handles_;       // by mailbox
  std::vector<handle_id> variable_handles_; // by mailbox; none: an end
  std::vector<target> target_of_; // by handle; a port: in another process
  // For the recorder alone.
  std::vector<handle_id> variable_of_; // by temporary
  std::vector<bool> is_collective_;    // by op
  /// By op, and the end of the last: where the temporaries that it makes begin
  /// in `made_`.
  std::vector<std::uint32_t> first_made_;
  std::vector<std::uint32_t> made_;
  std::unique_ptr<std::uint16_t[]>
    ready_on_; // by mailbox: worker, while watched
  std::deque<engine_stream> streams_;
  std::size_t workers_;
  std::size_t messages_ = 0;
  std::uint32_t largest_distance_ = 0;
  variable_mailbox* end_ = nullptr; // of the step; none: nothing runs
  bool end_waits_for_end_before_ = false;
};

} // namespace troupe::actors
