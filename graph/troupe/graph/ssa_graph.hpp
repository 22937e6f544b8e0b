// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/kernels/device.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// What an op handle does.
enum class op_kind : std::uint8_t {
  computation,     ///< one op of the program on one device
  scale_loss_grad, ///< writes the shard's weight n_i/n (or 1) into "loss@GRAD"
  all_reduce,      ///< sums gradients of all devices, result on each
  reduce,          ///< sums gradients of all devices, result on `root` only
  broadcast,       ///< copies a variable of device `root` to all devices
  fetch,           ///< passes a variable of one device to the caller
  send,            ///< sends a variable to a `recv` in another place
  recv,            ///< receives a variable from a `send` in another place
  count_samples,   ///< tells all devices how many samples each of them has
  gather_losses,   ///< tells all devices the loss of each of them
};

/// The name of the value, such as "computation".
std::string_view to_string(op_kind kind) noexcept;

/// Which of a device's streams a handle runs on.
enum class stream_kind : std::uint8_t {
  compute,
  collective,
  fetch,
  gradient, ///< weight gradients, if a pass moves them off `compute`
};

/// The name of the value, such as "compute".
std::string_view to_string(stream_kind kind) noexcept;

/// An operator of the SSA graph on one device. A joint collective concerns all
/// devices; its `device` is that of its first input, which runs it.
struct op_handle {
  handle_id id = no_handle;
  op_kind kind = op_kind::computation;
  stream_kind stream = stream_kind::compute;
  static constexpr std::uint16_t not_moved = UINT16_MAX >> 1;
  /// The device that the op has been moved from (passes/place_handles.hpp).
  std::uint16_t moved_from : 15 = not_moved;
  /// True with `build_options::accumulate`: the op works only in steps that
  /// update the parameters. In others it only sends its messages.
  std::uint16_t only_in_updates : 1 = 0;
  /// The op's description, shared by the handles of all devices. For kinds
  /// other than computation, its type is the kind's name. Its slots are then
  /// "X" and "Out", with one argument per input and output of the handle.
  /// scale_loss_grad has the attributes of the op that it replaces, plus
  /// "gradient_scale": "coeff" (n_i/n) or "one".
  const op_desc* desc = nullptr;
  /// Var handles read and written, in slot order: one per argument that names a
  /// variable (argument.hpp). A collective has one per device, in device order;
  /// the output of reduce and the input of broadcast have only the root's. An
  /// all_reduce of gradients a and b over devices 0 and 1 has a@0, a@1, b@0,
  /// b@1.
  std::span<const handle_id> inputs;
  std::span<const handle_id> outputs;
  /// The device that runs it: index into ssa_graph::devices.
  std::uint32_t device = 0;
  /// For collectives: position in the fixed order, from 0. Otherwise -1.
  std::int32_t collective_index = -1;
  std::uint32_t root = 0; ///< root device of reduce and broadcast
  /// among a stream's ready ops, the highest runs first
  std::int32_t priority = 0;

  /// The device on whose samples the op works.
  std::uint32_t shard() const noexcept {
    return moved_from == not_moved ? device : moved_from;
  }
};

/// One version of a variable on one device. A variable that all devices share
/// belongs to the first device. All versions of a name on a device share
/// storage. Edges order the readers of a version before the writer of the next
/// one.
struct var_handle {
  std::string_view name;
  handle_id id = no_handle;
  /// op that writes it; `no_handle` for version 0
  handle_id generator = no_handle;
  std::uint32_t device = 0;
  std::uint32_t version = 0;
  /// Number of the pair (name, device), from 0 in the order of first handles.
  std::uint32_t storage = 0;
  bool persistable = false;
  bool feed = false; ///< version 0 of a fed variable
};

/// Why one handle waits for another.
enum class edge_kind : std::uint8_t {
  data, ///< op -> variable that it writes, variable -> op that reads it
  write_after_read,
  write_after_write,
  order,    ///< fixed order of collectives, and order added by passes
  transfer, ///< send -> recv
};

/// The name of the value, such as "write_after_read".
std::string_view to_string(edge_kind kind) noexcept;

/// `to` of step s + distance waits for `from` of step s.
struct edge {
  handle_id from = no_handle;
  handle_id to = no_handle;
  edge_kind kind : 8 = edge_kind::data;
  std::uint32_t distance : 24 = 0; // keeps an edge at 12 bytes
  friend auto operator<=>(const edge&, const edge&) = default;
};

/// Input `input` of op `op` is the value that its variable had `distance` steps
/// ago. The distance is at least 1. The variable is a temporary, and the handle
/// is its last version in a step.
struct delayed_input {
  handle_id op = no_handle;
  std::uint32_t input = 0; ///< position in op_handle::inputs
  std::uint32_t distance = 1;
  friend auto operator<=>(const delayed_input&, const delayed_input&) = default;
};

/// A `send` and the matching `recv` in another place.
struct transfer {
  handle_id send = no_handle;
  handle_id recv = no_handle;
  friend bool operator==(const transfer&, const transfer&) = default;
};

/// Owns what the handles of a graph point to: descriptions, names and argument
/// lists. Constant once the graph is built.
struct handle_sources {
  std::shared_ptr<const program> described; ///< descriptions of computations
  std::deque<op_desc> made; ///< descriptions made by the builder
  /// names that the program does not declare
  std::deque<std::string> undeclared;
  std::vector<handle_id> arguments; ///< inputs and outputs of all ops
  /// Sources of the graph from which a pass made this one, if it still refers
  /// to them.
  std::shared_ptr<const handle_sources> before;
};

/// A program over several devices in static single assignment form. A value
/// type: passes take a graph and return another. Ops are numbered first (0 to
/// ops.size() - 1), then variables, so an id tells its kind.
///
/// Every op handle has an implicit edge to itself at distance 1, because an
/// actor runs one step at a time. These edges are not listed.
struct ssa_graph {
  std::vector<device_id> devices;
  std::vector<op_handle> ops;
  std::vector<var_handle> vars;
  std::vector<edge> edges;
  /// False: `edges` lacks the data edges within a step
  /// (`drop_data_edges` in ssa/ssa_edges.hpp).
  bool lists_data_edges = true;
  /// Sorted. Usually empty; see passes/delayed_inputs.hpp.
  std::vector<delayed_input> delayed_inputs;
  /// True: a collective has one handle per device (its rank) instead of a joint
  /// one. Its handles have the same `collective_index`
  /// (passes/rank_collectives.hpp).
  bool rank_collectives = false;
  /// Place of each device, such as a process: devices in one place can reach
  /// each other's memory. Empty: all devices are in one place. With several
  /// places (passes/transfers.hpp), each op uses only variables of its own
  /// place.
  std::vector<std::uint32_t> places;
  /// A transfer's number is its position here. The numbers are the same in
  /// every process that builds the same graph. Sends and receives are both in
  /// this order.
  std::vector<transfer> transfers;
  std::uint32_t num_storages = 0;
  /// Shared by copies of the graph.
  std::shared_ptr<const handle_sources> sources;

  /// True if `id` is an op; otherwise it is a version of a variable.
  bool is_op(handle_id id) const noexcept { return id < ops.size(); }
  ///@{
  /// The handle `id`. It must be less than `size()` and of that kind.
  const op_handle& op(handle_id id) const { return ops[id]; }
  const var_handle& var(handle_id id) const { return vars[id - ops.size()]; }
  ///@}
  std::size_t size() const noexcept { return ops.size() + vars.size(); }
  /// The place of a device; 0 if all are in one.
  std::uint32_t place_of(std::size_t device) const noexcept {
    return places.empty() ? 0 : places[device];
  }
  /// Largest distance of any edge; at least 1 because of the implicit edges.
  std::uint32_t max_distance() const noexcept;
  /// How many steps old input `input` of an op is; 0 unless it is delayed.
  std::uint32_t distance_of(handle_id op, std::size_t input) const noexcept;
  /// The last version of a variable on a device; no_handle if there is none.
  handle_id latest(std::string_view name, std::size_t device) const;
};

/// Names of the variables that must be fed on any device, sorted.
std::vector<std::string> feed_names(const ssa_graph& g);

/// The name of a handle in errors, dumps and actors: "conv2d#12@cpu:1" or
/// "fc_0.w_0:v1@cpu:0".
std::string handle_name(const ssa_graph& g, handle_id id);

} // namespace troupe::graph
