// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/grouped.hpp>
#include <troupe/actors/op_task.hpp>
#include <troupe/actors/ready_op.hpp>
#include <troupe/actors/step_state.hpp>
#include <troupe/actors/storage.hpp>
#include <troupe/graph/op_order.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

class direct_graph;
class stream_actor;
struct graph_context;

/// An op actor in the direct form, on one cache line: its counting mailbox, its
/// task, and where its lists are.
///
/// Ops that wait for the same messages share a mailbox, that of the first of
/// them, their *leader*: who tells it tells all of them at once.
///
/// The mailbox counts, per slot, the messages still to come. Who sends the last
/// one arms the counter for the slot's next step and hands the ops to their
/// streams. Nobody queues, locks or allocates.
///
/// Memory order: the decrement is acq_rel. Its release half publishes the
/// sender's writes; its acquire half, on the last decrement, takes in those of
/// all senders, since the decrements of one counter form a release sequence.
/// Who reads a count of one, acquire, has seen all others and is the only
/// sender left: it need not decrement, so a chain runs without any locked
/// instruction. If all messages come from one serial stream, plain loads and
/// stores count; the stream's inbox orders its drains on different workers.
/// Handing an op to another worker goes through a stream's inbox or the job
/// queue, which order it again. Arming is relaxed: the slot's next messages
/// belong to a step that is admitted after this one has ended.
class alignas(64) direct_op final : public ready_op {
public:
  void run(worker& on) override;
  const graph::op_handle& op() const noexcept override;
  std::string op_name() const override;
  void fail_step(error reason) override;

private:
  friend class direct_graph;

  static constexpr std::uint32_t max_slots = 4;
  static constexpr std::uint32_t none = UINT32_MAX;

  std::uint32_t lists_ = 0; // where its lists begin
  direct_graph* graph_ = nullptr;
  std::unique_ptr<op_task> task_;
  // The leader's. Messages still to come, times two; the last bit changes when
  // the mailbox opens, so that a description can tell "all" from "none".
  std::array<std::atomic<std::uint32_t>, max_slots> missing_{};
  std::uint32_t next_in_group_ = none;
  std::uint8_t stream_ = 0;
  bool counts_plainly_ = false; // the leader's: all messages from one thread
  std::uint8_t slot_ = 0;       // of the step that it is ready for
};
static_assert(sizeof(direct_op) == 64);

/// The op actors' mailboxes of a graph in the direct form, laid out in the
/// order of use.
///
/// The direct form (one process, edges as counters, no trace, streams that are
/// done at launch): ops tell the ops behind them, without the variables between
/// and without messages that others imply (`graph::op_order`).
///
/// A step in life: arrive (x n) -> open: stream.submit -> run: the task ->
/// release buffers -> tell successors -> tell the step -> tell those of later
/// steps, if steps overlap; itself too, unless another's message implies it.
///
/// Thread rule: construction and `start` by the executor's thread; ops run on
/// their streams.
class direct_graph {
public:
  struct parts {
    graph_context* context = nullptr; ///< with its graph
    const std::vector<stream_actor*>* streams = nullptr;
    std::vector<std::uint8_t> stream_of; ///< by op: number of its stream
    std::vector<std::unique_ptr<op_task>> tasks; ///< by op
    /// Temporaries' last users: op, number of the temporary.
    std::vector<std::pair<handle_id, std::uint32_t>> uses;
    storage_places* places = nullptr;
  };
  /// Whether the direct form has room for so many.
  static bool has_room(std::size_t slots, std::size_t streams) noexcept {
    return slots <= direct_op::max_slots && streams <= UINT8_MAX;
  }

  direct_graph(parts p, const graph::op_order& order);

  /// Sends the messages that begin the step of `slot`.
  void start(std::uint32_t slot);
  std::size_t messages_per_step() const noexcept { return messages_; }
  /// Ops whose end a step waits for.
  std::uint32_t ends_per_step() const noexcept { return ends_per_step_; }
  /// Messages that an op still waits for in a step that has not ended; 0: it is
  /// ready, or has run. Any thread.
  std::uint32_t missing(handle_id handle,
                        const step_state& step) const noexcept;

private:
  friend class direct_op;
  struct mailbox;
  struct mailboxes;
  /// The start of a gathered step, in the stream that computes on device 0: who
  /// drains it goes on with all that it makes ready. For others, the first of
  /// the ops that it tells.
  class start_op final : public ready_op {
  public:
    start_op(direct_graph& graph, std::uint32_t slot)
      : graph_(graph), slot_(slot) {}

    void run(worker& on) override;
    const graph::op_handle& op() const noexcept override;
    std::string op_name() const override;
    void fail_step(error reason) override;

  private:
    direct_graph& graph_;
    std::uint32_t slot_;
  };
  /// Temporaries by who releases them.
  struct releases {
    grouped<std::uint32_t> own;    ///< by op: it alone
    grouped<std::uint32_t> shared; ///< by op: numbers in `shared_releases_`
    /// By leader: its mailbox, which opens when the last users have run.
    grouped<std::uint32_t> at_opening;
  };

  /// Temporaries that the same ops release: counted once for all of them.
  struct alignas(32) shared_release {
    /// Ops that are not done, by slot. acq_rel: the last one frees memory that
    /// the others have read. Who reads one, acquire, is the last without
    /// decrementing. Plain loads and stores if all are on one serial stream.
    std::array<std::atomic<std::uint32_t>, direct_op::max_slots> users{};
    std::uint32_t expected = 0;
    std::uint32_t first = 0; ///< in shared_temporaries_
    std::uint32_t count = 0;
    bool on_one_thread = false;

    bool is_last(std::uint32_t slot) noexcept;
  };

  // What an op reads when it has run, one after the other in `lists_`: the
  // head, the temporaries that it alone releases, the numbers of those that it
  // releases with others in `shared_releases_`, the leaders that it tells in
  // the step, those that it tells in later steps, each of these with the
  // distance in the last two bits, and the temporaries that its mailbox
  // releases as it opens. The step's end waits for ops that tell nobody in it.
  enum head : std::uint32_t {
    expected,      ///< messages that the op's mailbox waits for per step
    leader,        ///< the op whose mailbox that is
    own_places,    ///< how many
    shared_places, ///< how many
    told_now,      ///< leaders, how many
    told_later,    ///< how many
    at_opening,    ///< places, how many
    head_size
  };
  static constexpr std::uint32_t distance_bits = 2;

  std::size_t num_ops() const noexcept { return number_.size(); }
  std::uint8_t stream_of(handle_id op) const {
    return ops_[number_[op]].stream_;
  }
  bool is_serial(std::uint8_t stream) const;
  void place_ops(parts& p);
  mailboxes find_mailboxes(const graph::op_order& order) const;
  template <class Predecessors>
  void count_messages(mailbox& m, std::span<const handle_id> ops,
                      Predecessors before, const graph::op_order& order) const;
  void arm(const mailboxes& all);
  releases
  find_releases(std::span<const std::pair<handle_id, std::uint32_t>> uses,
                const mailboxes& all, const graph::op_order& order);
  /// A mailbox that waits for just these ops of its step; null if there is
  /// none.
  const mailbox* find_behind(std::span<const handle_id> ops,
                             const mailboxes& all,
                             const graph::op_order& order) const;
  void share_release(shared_release& release, std::uint32_t first,
                     std::uint32_t count, const grouped<handle_id>& last_users);
  std::uint32_t leader_of(const mailboxes& all, handle_id op) const;
  struct told_leaders {
    grouped<std::uint32_t> now;
    grouped<std::uint32_t> later; ///< with the distance
  };
  told_leaders find_told(const mailboxes& all,
                         const graph::op_order& order) const;
  void list(const mailboxes& all, const releases& released,
            const graph::op_order& order);

  void tell_first_ones(std::uint32_t slot);
  void arrive(std::uint32_t leader_number, std::uint32_t slot);
  void arrive_from_any_thread(direct_op& to, std::uint32_t slot);
  void open(direct_op& first, std::uint32_t slot, std::uint32_t last);
  void run(direct_op& o);
  void execute(direct_op& o, step_state& step);
  void release(std::span<const std::uint32_t> temporaries, std::uint32_t slot);
  void release_shared(std::span<const std::uint32_t> numbers,
                      std::uint32_t slot);
  void tell_now(std::span<const std::uint32_t> told, const step_state& step,
                const direct_op& by);
  void tell_later(std::span<const std::uint32_t> told, std::uint32_t slot);
  void end_step(step_state& step);

  // What every op's run reads comes first.
  graph_context& context_;
  std::array<step_state*, direct_op::max_slots> steps_{};
  std::unique_ptr<direct_op[]> ops_; // by stream, then by handle
  std::vector<std::uint32_t> lists_;
  std::vector<shared_release> shared_releases_;
  std::vector<std::uint32_t> shared_temporaries_;
  std::vector<stream_actor*> streams_;
  storage_places& places_;
  // The last bit of mailboxes that have not opened in the slot's step. Relaxed:
  // others only describe.
  std::array<std::atomic<std::uint32_t>, direct_op::max_slots> closed_{};
  std::vector<handle_id> handles_;        // by number
  std::vector<std::uint32_t> number_;     // by handle
  std::vector<std::uint32_t> first_ones_; // leaders that the start tells
  std::deque<start_op> starts_;           // by slot
  std::size_t messages_ = 0;
  std::uint32_t ends_per_step_ = 0;
};

} // namespace troupe::actors
