// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa/reachability.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

/// A stream of a graph, as far as its messages depend on it.
struct planned_stream {
  /// Its launches are done when they return (CPU devices).
  static constexpr std::int32_t host = -1;

  std::uint32_t device = 0; ///< index into ssa_graph::devices
  graph::stream_kind kind = graph::stream_kind::compute;
  int width = 1; ///< ops that run at the same time
  /// Streams with the same number wait for each other's tickets.
  std::int32_t ticket_group = host;

  bool is_serial() const noexcept { return width == 1; }
  bool is_host() const noexcept { return ticket_group == host; }
  friend bool operator==(const planned_stream&,
                         const planned_stream&) = default;
};

/// The streams that the handles of a graph run on: one to compute and one to
/// fetch per device of this process, and one for the collectives of each that
/// has some. A device that owns several of the `workers` computes on a wide
/// stream.
/// @param device_is_here as in `wiring_options`
std::vector<planned_stream>
plan_streams(const graph::ssa_graph& g, std::size_t workers,
             const std::vector<bool>& device_is_here = {});

/// How an op tells that it is done.
enum class op_end : std::uint8_t {
  at_return, ///< when its launch returns
  by_ticket, ///< its launch may be pending: a position of its stream
  later,     ///< a call, from any thread
};

/// A message that a handle waits for, or would wait for if others did not imply
/// it.
struct wired_edge {
  handle_id from = no_handle; ///< none: the start of the step
  handle_id to = no_handle;
  std::uint32_t distance : 30 = 0; ///< `to` of so many steps later
  std::uint32_t sent : 1 = 1;      ///< false: others imply it
  /// The receiver needs a value that is really there, not one that its stream
  /// waits for: sent when the op that makes it has completed.
  std::uint32_t at_completion : 1 = 0;
  friend bool operator==(const wired_edge&, const wired_edge&) = default;
};

/// A handle that gives a temporary's memory back in every step.
struct planned_release {
  handle_id op = no_handle;
  std::uint32_t storage = 0;  ///< var_handle::storage
  std::uint32_t distance = 0; ///< of the step so many before
  friend auto operator<=>(const planned_release&,
                          const planned_release&) = default;
};

struct wiring_options {
  std::vector<planned_stream> streams; ///< as `plan_streams` lists them
  /// Whether a step may begin before the one before has ended. If not, its
  /// start says all that handles of the step before could.
  bool steps_overlap = true;
  /// Ops that complete by a call from elsewhere, beside transfers and
  /// collectives with a handle per device; empty: no others.
  std::function<bool(const graph::op_handle&)> ends_later = {};
  /// Whether the handles of a device are in this process; empty: all are. A
  /// process has whole places of the graph.
  std::vector<bool> device_is_here = {};
};

/// Who tells whom in a step, who gives which memory back, what ends a step: all
/// that is decided about a graph's messages, once. A pure function of the graph
/// and the options; the engine executes it and decides nothing else.
///
/// - An op tells the variables that it writes, a variable the ops that read it,
///   an op those that must not overtake it; ops also tell themselves of the
///   next step. What chains of other messages imply is not sent
///   (graph/ssa/implied_edges.hpp).
/// - A handle gets at least one message per step. One that no other handle of
///   its step tells gets a start, unless it is version 0 of a variable that the
///   step before tells. So no op runs before its step has begun.
/// - The step's end waits for handles that tell no other of their step, and for
///   ops that do something on completion.
/// - Of a temporary's users those give it back that no other user follows.
/// - No message stands for a transfer: the op that receives gets its start, and
///   completes when the value has come. Messages imply only what leads through
///   no transfer, which ends without a value when the sender is lost.
class wiring_plan {
public:
  /// Throws error(graph_invalid) if the graph has a cycle.
  wiring_plan(const graph::ssa_graph& g, wiring_options options);

  const std::vector<planned_stream>& streams() const noexcept {
    return options_.streams;
  }
  bool steps_overlap() const noexcept { return options_.steps_overlap; }
  bool is_here(handle_id id) const;
  /// Position in `streams` of the stream that an op runs on; of a variable:
  /// that of the op that tells it, or of its device's ops if a start does.
  std::uint32_t stream_of(handle_id id) const { return stream_of_[id]; }
  op_end end_of(handle_id op) const { return end_of_[op]; }
  /// The op that tells a variable, and of how many steps before; none if a
  /// start does. An op tells itself.
  struct teller {
    handle_id op = no_handle;
    std::uint32_t distance = 0;
  };
  teller teller_of(handle_id id) const;

  /// Sorted: by sender, starts last. Those of other processes are not there.
  const std::vector<wired_edge>& edges() const noexcept { return edges_; }
  /// Those of one sender.
  std::span<const wired_edge> told_by(handle_id from) const;
  /// Starts included.
  std::size_t messages_per_step() const noexcept { return messages_; }

  /// The ops here, in the order in which one worker runs them if it drains the
  /// streams in turn: what an op makes ready runs next, the first told first
  /// (see stream_actor). What ops use is laid out in this order, so that memory
  /// is read from front to back.
  std::vector<handle_id> expected_order() const;

  bool ends_step(handle_id id) const { return ends_step_[id]; }
  /// Sorted, by op.
  const std::vector<planned_release>& releases() const noexcept {
    return releases_;
  }
  /// Those of one op.
  std::span<const planned_release> releases_of(handle_id op) const;

private:
  const graph::ssa_graph& local() const { return local_ ? *local_ : graph_; }
  void find_local_part();
  void place_handles();
  void list_edges(const graph::reachability& reach);
  void add_own_edges(const std::vector<bool>& implied);
  void add_starts();
  void choose_times();
  void find_ends();
  void find_releases(const graph::reachability& reach);
  void sort_releases(std::span<const planned_release> all);
  bool must_complete(handle_id maker, handle_id reader) const;

  const graph::ssa_graph& graph_;
  wiring_options options_;
  /// With the edges that messages of this process stand for, if there are
  /// others; while the plan is made.
  std::optional<graph::ssa_graph> local_;
  std::vector<std::uint32_t> stream_of_;
  std::vector<op_end> end_of_;
  std::vector<handle_id> last_version_; ///< by var: of what it is version 0
  std::vector<wired_edge> edges_;
  std::vector<std::size_t> first_edge_; // by sender; starts; the end
  std::vector<bool> ends_step_;
  std::vector<planned_release> releases_;
  std::vector<std::size_t> first_release_; // by op; the end
  std::size_t messages_ = 0;
};

/// {"handles":[{"id","in":[{"from","distance","stream","sent"}],"releases":[],
/// "ends_step"}],"messages":N}: `from` and `stream` are null for a start,
/// `releases` lists variable handles (the last version of what is given back).
std::string to_json(const wiring_plan& plan, const graph::ssa_graph& g);

/// A line per handle: its name, whom it waits for ("-1": in the step before; in
/// brackets: implied, not sent), and "ends the step".
std::string to_text(const wiring_plan& plan, const graph::ssa_graph& g);

/// "compute@cpu:0".
std::string stream_name(const planned_stream& s, const graph::ssa_graph& g);

} // namespace troupe::actors
