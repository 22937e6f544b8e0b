// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa/reachability.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::graph {

/// The properties of a stream that determine a graph's messages.
struct planned_stream {
  /// Ticket group of streams whose launches are done when they return (CPU
  /// devices).
  static constexpr std::int32_t host = -1;

  std::uint32_t device = 0; ///< index into ssa_graph::devices
  stream_kind kind = stream_kind::compute;
  int width = 1; ///< number of ops that can run at the same time
  /// Streams with the same number can wait for each other's tickets.
  std::int32_t ticket_group = host;

  bool is_serial() const noexcept { return width == 1; }
  bool is_host() const noexcept { return ticket_group == host; }
  friend bool operator==(const planned_stream&,
                         const planned_stream&) = default;
};

/// The streams on which the handles of a graph run. Each device of this process
/// has a compute stream and a fetch stream. A device with collectives also has
/// a collective stream. A device with several of the `workers` has a wide
/// compute stream.
/// @param device_is_here as in `wiring_options`
std::vector<planned_stream>
plan_streams(const ssa_graph& g, std::size_t workers,
             const std::vector<bool>& device_is_here = {});

/// Sets the ticket groups of planned streams: those that can wait for each
/// other's tickets form a group.
/// @param streams the device streams, in the same order
void set_ticket_groups(std::span<planned_stream> planned,
                       std::span<const stream* const> streams);

/// When an op is done.
enum class op_end : std::uint8_t {
  at_return, ///< when its launch returns
  by_ticket, ///< its launch may be pending; done at a position of its stream
  later,     ///< when a callback is called, on any thread
};

/// A message that a handle waits for, or would wait for if other messages did
/// not imply it.
struct wired_edge {
  handle_id from = no_handle; ///< `no_handle`: the start of the step
  handle_id to = no_handle;
  /// how many steps later the receiver's step is
  std::uint32_t distance : 29 = 0;
  std::uint32_t sent : 1 = 1; ///< false: other messages imply it
  /// The receiver needs a computed value and cannot leave the waiting to its
  /// stream. The message is sent when the producing op has completed.
  std::uint32_t at_completion : 1 = 0;
  /// The receiver is the next collective of the sender's rank. A rank may begin
  /// it before this one is complete.
  std::uint32_t is_turn : 1 = 0;
  friend bool operator==(const wired_edge&, const wired_edge&) = default;
};

/// A release of a temporary's memory, which a handle does in every step.
struct planned_release {
  handle_id op = no_handle;
  std::uint32_t storage = 0; ///< var_handle::storage
  /// the temporary belongs to the step this many before
  std::uint32_t distance = 0;
  friend auto operator<=>(const planned_release&,
                          const planned_release&) = default;
};

struct wiring_options {
  std::vector<planned_stream> streams; ///< as `plan_streams` lists them
  /// True if a step may begin before the previous one has ended. If false, the
  /// start of a step implies all messages from the previous step.
  bool steps_overlap = true;
  /// Ops that complete by a callback, in addition to transfers and collectives
  /// with a handle per device; empty: none.
  std::function<bool(const op_handle&)> ends_later = {};
  /// By device: true if its handles are in this process; empty: all are. A
  /// process has complete places of the graph.
  std::vector<bool> device_is_here = {};
};

/// Determines who sends messages to whom in a step, who releases which memory,
/// and what ends a step. It is a pure function of the graph and the options and
/// is computed once. The engine only executes it.
///
/// - An op notifies the variables that it writes and the ops that must run
///   after it. A variable notifies the ops that read it. An op also notifies
///   itself for the next step. Messages that chains of other messages imply are
///   not sent (graph/ssa/implied_edges.hpp).
/// - What a collective waits for comes first in a sender's list, that of the
///   first collective before others, because newly ready ops run in the order
///   in which they became ready. Gradients are then merged while others are
///   computed.
/// - A handle gets at least one message per step. A variable gets a start if it
///   gets no other message. An op gets a start unless a handle of its own step
///   that itself waits for a start notifies it. Therefore no op runs before its
///   step has begun.
/// - The step's end waits for handles that send no message within their step,
///   and for ops that do something on completion.
/// - A temporary is released by those users that no other user follows.
/// - A transfer has no message: the receiving op gets its start and completes
///   when the value has arrived. A chain through a transfer implies no message,
///   because a transfer ends without a value if the sender is lost.
class wiring_plan {
public:
  /// Throws error(graph_invalid) if the graph has a cycle.
  wiring_plan(const ssa_graph& g, wiring_options options);

  const std::vector<planned_stream>& streams() const noexcept {
    return options_.streams;
  }
  bool steps_overlap() const noexcept { return options_.steps_overlap; }
  bool is_here(handle_id id) const;
  /// Position in `streams` of the stream that an op runs on. For a variable:
  /// the stream of the op that notifies it, or that of its device's ops if a
  /// start does.
  std::uint32_t stream_of(handle_id id) const { return stream_of_[id]; }
  op_end end_of(handle_id op) const { return end_of_[op]; }
  /// The op that notifies a variable, and how many steps before; `no_handle` if
  /// a start does. For an op: itself.
  struct teller {
    handle_id op = no_handle;
    std::uint32_t distance = 0;
  };
  teller teller_of(handle_id id) const;

  /// Messages sorted by sender, starts last. Messages of other processes are
  /// not included.
  const std::vector<wired_edge>& edges() const noexcept { return edges_; }
  /// The messages of one sender.
  std::span<const wired_edge> told_by(handle_id from) const;
  /// Number of messages per step, including starts.
  std::size_t messages_per_step() const noexcept { return messages_; }

  /// The ops of this process, in the order in which a single worker runs them
  /// if it drains the streams in turn: newly ready ops run next, in the order
  /// in which they became ready (see stream_actor). The data of ops is laid out
  /// in this order, so that memory is read sequentially.
  std::vector<handle_id> expected_order() const;

  bool ends_step(handle_id id) const { return ends_step_[id]; }
  /// Sorted, by op.
  const std::vector<planned_release>& releases() const noexcept {
    return releases_;
  }
  /// The releases of one op.
  std::span<const planned_release> releases_of(handle_id op) const;

private:
  const ssa_graph& local() const { return local_ ? *local_ : graph_; }
  void find_local_part();
  void place_handles();
  void list_edges(const reachability& reach);
  void put_urgent_first(const reachability& reach);
  bool is_turn(const edge& e, const std::vector<std::uint32_t>& users) const;
  void add_own_edges(const std::vector<bool>& implied);
  void add_starts();
  void choose_times();
  void find_ends();
  void find_releases(const reachability& reach);
  void sort_releases(std::span<const planned_release> all);
  bool must_complete(handle_id maker, handle_id reader) const;

  const ssa_graph& graph_;
  wiring_options options_;
  /// If there are other processes: the graph with the edges of this process
  /// only. Used while the plan is computed.
  std::optional<ssa_graph> local_;
  std::vector<std::uint32_t> stream_of_;
  std::vector<op_end> end_of_;
  /// by var: last version of the variable of which this is version 0
  std::vector<handle_id> last_version_;
  std::vector<wired_edge> edges_;
  // by sender, then that of starts, then the end
  std::vector<std::size_t> first_edge_;
  std::vector<bool> ends_step_;
  std::vector<planned_release> releases_;
  std::vector<std::size_t> first_release_; // by op, then the end
  std::size_t messages_ = 0;
};

/// {"handles":[{"id","in":[{"from","distance","stream","sent"}],"releases":[],
/// "ends_step"}],"messages":N}: `from` and `stream` are null for a start,
/// `releases` lists variable handles (the last version of each released
/// variable).
std::string to_json(const wiring_plan& plan, const ssa_graph& g);

/// One line per handle: its name, the senders that it waits for ("-1": in the
/// previous step; in brackets: implied, not sent), and "ends the step" if it
/// does.
std::string to_text(const wiring_plan& plan, const ssa_graph& g);

/// "compute@cpu:0".
std::string stream_name(const planned_stream& s, const ssa_graph& g);

} // namespace troupe::graph
