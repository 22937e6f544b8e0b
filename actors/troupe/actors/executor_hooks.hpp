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

/// How readiness is sent along an edge. Results are bit-identical in all forms.
enum class edge_form : std::uint8_t {
  counter, ///< a counter in this process; the fastest form
  message, ///< a CAF message to the receiver's actor
  mixed,   ///< every second edge sends CAF messages
};

/// A function from graph to graph. It is applied after the graph is built and
/// before it is checked.
using graph_pass = std::function<graph::ssa_graph(graph::ssa_graph)>;

/// Executor settings for tests, benchmarks and tools. Training needs none of
/// them.
struct executor_hooks {
  /// Fail the step at the first op that produces a NaN or an infinity.
  bool check_nan = false;
  bool dry_run = false; ///< schedule everything, run no kernel
  /// In a dry run: called in place of each op's kernel, with the op's handle,
  /// on the worker that runs it; several at once. Must not throw. Null: nothing
  /// is called.
  std::function<void(handle_id)> dry_run_op = {};
  /// A level of recording that the executor asks for; see `executor::trace`.
  trace_level trace = trace_level::off;
  /// Devices to use, one per entry of `executor_options::devices`. Empty: the
  /// backends make them. They are shared so that fetched tensors can outlive
  /// the executor.
  std::vector<std::shared_ptr<device>> device_instances = {};
  /// Passes that rewrite the built graph, applied in this order.
  std::vector<graph_pass> passes = {};
  edge_form form = edge_form::counter;
  /// With `edge_form::counter`: this many edges, spread evenly, send CAF
  /// messages instead. Shows what a few such edges cost the other edges.
  std::size_t message_edges = 0;
  /// This many of the program's ops, spread evenly, are treated as ops that may
  /// complete after their launch returns. Shows what a few such ops cost the
  /// others.
  std::size_t pending_ops = 0;
  /// If set, draws the order of an op's messages and of ready ops from a seed.
  std::optional<delivery_shuffle> shuffle = {};
  /// Split each collective into one handle per device. Devices with their own
  /// streams need this. Graphs over several places are split so in any case.
  bool rank_collectives = false;
  /// One place per device. The graph is split over places as it would be over
  /// processes, but all places are in this process and exchange values in
  /// memory. Empty: a single place.
  std::vector<std::uint32_t> places = {};
  /// Skip the proof that all conflicting accesses are ordered.
  bool skip_hazard_check = false;
};

} // namespace troupe
