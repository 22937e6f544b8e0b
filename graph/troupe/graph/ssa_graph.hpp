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
  scale_loss_grad, ///< writes the shard's weight n_i/n (or 1) into loss@GRAD
  all_reduce,      ///< sums gradients of all devices, result on each
  reduce,          ///< sums gradients of all devices, result on `root` alone
  broadcast,       ///< copies a variable of device `root` to all devices
  fetch,           ///< hands a variable of one device to the caller
  send,            ///< hands a variable to a `recv` of another place
  recv,            ///< writes a variable that a `send` hands over
};

std::string_view to_string(op_kind kind) noexcept;

/// Which of a device's streams a handle runs on.
enum class stream_kind : std::uint8_t { compute, collective, fetch };

std::string_view to_string(stream_kind kind) noexcept;

/// An operator of the SSA graph, on one device (a joint collective: on all,
/// listed under the device that runs it, that of its first input).
struct op_handle {
  handle_id id = no_handle;
  op_kind kind = op_kind::computation;
  stream_kind stream = stream_kind::compute;
  /// The op; for kinds other than computation its type is the kind's name and
  /// its slots are "X" and "Out", with an argument per input and output of the
  /// handle. scale_loss_grad has the attributes of the op that it stands for
  /// and "gradient_scale", "coeff" (n_i/n) or "one". Shared by the handles of
  /// all devices.
  const op_desc* desc = nullptr;
  /// Var handles read and written, in slot order: one per argument that names a
  /// variable (argument.hpp). A collective has one per device, in device order,
  /// or only the root's (output of reduce, input of broadcast). An all_reduce
  /// of gradients a and b over devices 0 and 1 has a@0, a@1, b@0, b@1.
  std::span<const handle_id> inputs;
  std::span<const handle_id> outputs;
  std::uint32_t device = 0; ///< index into ssa_graph::devices
  /// Collectives: position in the one fixed order, from 0; else -1.
  std::int32_t collective_index = -1;
  std::uint32_t root = 0;    ///< reduce, broadcast: device that has the result
  std::int32_t priority = 0; ///< higher runs first among ready ops of a stream
};

/// One version of a variable on one device; of a shared one, which ops of all
/// devices use, on the first. All versions of a name on a device share storage;
/// edges keep readers of one version and the writer of the next apart.
struct var_handle {
  std::string_view name;
  handle_id id = no_handle;
  handle_id generator = no_handle; ///< op that writes it; none for version 0
  std::uint32_t device = 0;
  std::uint32_t version = 0;
  /// Number of (name, device), from 0 on in the order of their first handles.
  std::uint32_t storage = 0;
  bool persistable = false;
  bool feed = false; ///< version 0 of a fed variable
};

/// Why one handle waits for another.
enum class edge_kind : std::uint8_t {
  data, ///< op -> var that it writes, var -> op that reads it
  write_after_read,
  write_after_write,
  order,    ///< collectives in their fixed order; passes add others
  transfer, ///< send -> recv, by whatever carries the value
};

std::string_view to_string(edge_kind kind) noexcept;

/// `to` of step s + distance waits for `from` of step s.
struct edge {
  handle_id from = no_handle;
  handle_id to = no_handle;
  edge_kind kind : 8 = edge_kind::data;
  std::uint32_t distance : 24 = 0; // twelve bytes per edge: there are many
  friend auto operator<=>(const edge&, const edge&) = default;
};

/// Input `input` of op `op` is what its variable held `distance` steps ago, at
/// least one. The variable is a temporary and this its last version in a step.
struct delayed_input {
  handle_id op = no_handle;
  std::uint32_t input = 0; ///< position in op_handle::inputs
  std::uint32_t distance = 1;
  friend auto operator<=>(const delayed_input&, const delayed_input&) = default;
};

/// A `send` and the `recv` in another place that it hands a variable to.
struct transfer {
  handle_id send = no_handle;
  handle_id recv = no_handle;
  friend bool operator==(const transfer&, const transfer&) = default;
};

/// What the handles of a graph point into: their descriptions, names and lists
/// of arguments. Constant once the graph is made.
struct handle_sources {
  std::shared_ptr<const program> described; ///< computations' descriptions
  std::deque<op_desc> made;           ///< those of handles the builder made
  std::deque<std::string> undeclared; ///< names the program does not declare
  std::vector<handle_id> arguments;   ///< inputs and outputs of all ops
  /// Of the graph that a pass made this one from, whose descriptions and names
  /// it uses, too.
  std::shared_ptr<const handle_sources> before;
};

/// A program over several devices in static single assignment form. A value:
/// passes take one and return another. Handles are numbered ops first
/// (0 .. ops.size()-1), then vars, so an id tells its kind.
///
/// Every op handle has an implicit edge to itself at distance 1 (an actor runs
/// one step at a time), which is not listed.
struct ssa_graph {
  std::vector<device_id> devices;
  std::vector<op_handle> ops;
  std::vector<var_handle> vars;
  std::vector<edge> edges;
  /// Sorted; few graphs have any. Made by passes/delayed_inputs.hpp.
  std::vector<delayed_input> delayed_inputs;
  /// A collective is a handle per device, its rank, instead of one for all:
  /// those with the same `collective_index` (passes/rank_collectives.hpp).
  bool rank_collectives = false;
  /// By device: where its memory can be reached from, e.g. a process. Empty:
  /// all devices are in one place. With several (passes/transfers.hpp), each op
  /// uses variables of its own place only.
  std::vector<std::uint32_t> places;
  /// Numbered by their position, equal for all who build the same graph: in the
  /// order of their sends, which is that of their receives.
  std::vector<transfer> transfers;
  std::uint32_t num_storages = 0;
  /// Shared by copies of the graph.
  std::shared_ptr<const handle_sources> sources;

  /// Whether `id` is an op; else it is a version of a variable.
  bool is_op(handle_id id) const noexcept { return id < ops.size(); }
  ///@{
  /// The handle `id`, which is one of that kind and below `size()`.
  const op_handle& op(handle_id id) const { return ops[id]; }
  const var_handle& var(handle_id id) const { return vars[id - ops.size()]; }
  ///@}
  std::size_t size() const noexcept { return ops.size() + vars.size(); }
  /// The place of a device: `places`, or 0 where all are in one.
  std::uint32_t place_of(std::size_t device) const noexcept {
    return places.empty() ? 0 : places[device];
  }
  /// Largest distance of any edge, at least 1 (the implicit self edges).
  std::uint32_t max_distance() const noexcept;
  /// How many steps old input number `input` of an op is: mostly 0.
  std::uint32_t distance_of(handle_id op, std::size_t input) const noexcept;
  /// The last version of a variable on a device; no_handle if there is none.
  handle_id latest(std::string_view name, std::size_t device) const;
};

/// Names of the variables that must be fed, on whichever device. Sorted.
std::vector<std::string> feed_names(const ssa_graph& g);

/// "conv2d#12@cpu:1" or "fc_0.w_0:v1@cpu:0": the name that errors, dumps and
/// actors use.
std::string handle_name(const ssa_graph& g, handle_id id);

} // namespace troupe::graph
