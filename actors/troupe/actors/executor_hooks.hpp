// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/delivery_shuffle.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/device.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace troupe {

/// In which form readiness travels along an edge. Results are bit-equal.
enum class edge_form : std::uint8_t {
  counter, ///< a counting mailbox in this process: the fast form
  message, ///< a CAF message in the receiver's ordinary door
  mixed,   ///< every other edge a message
};

/// A graph -> graph function, applied after building and before checking.
using graph_pass = std::function<graph::ssa_graph(graph::ssa_graph)>;

/// What tests, benchmarks and tools set in an executor. A training needs none
/// of it.
struct executor_hooks {
  /// End the step at the first op that makes a NaN or an infinity.
  bool check_nan = false;
  bool dry_run = false; ///< schedule everything, run no kernel
  /// What is recorded from the first step on; see `executor::trace`.
  trace_level trace = trace_level::off;
  /// The devices themselves, one per entry of `executor_options::devices`;
  /// empty: made by their backends. Shared so that fetched tensors may outlive
  /// the executor.
  std::vector<std::shared_ptr<device>> device_instances = {};
  /// Rewrite the built graph, in this order.
  std::vector<graph_pass> passes = {};
  edge_form form = edge_form::counter;
  /// With edges as counters: so many of them, spread evenly, are CAF messages
  /// all the same. Shows what few such edges cost the others.
  std::size_t message_edges = 0;
  /// So many of the program's ops, spread evenly, are treated as ops that may
  /// end behind the return of their launch. Shows the same.
  std::size_t pending_ops = 0;
  /// Messages of an op, and ready ops, in an order drawn from a seed.
  std::optional<delivery_shuffle> shuffle = {};
  /// A collective is a handle per device instead of one for all: what devices
  /// with streams of their own need.
  bool rank_collectives = false;
  /// A place per device: the graph is split as it is over processes, but all
  /// places are in this one and exchange values in memory. Empty: one.
  std::vector<std::uint32_t> places = {};
  /// Skips the proof that all accesses are ordered.
  bool skip_hazard_check = false;
};

} // namespace troupe
