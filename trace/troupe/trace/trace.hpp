// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/actor_table.hpp>
#include <troupe/base/ids.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/base/stacks/code_place.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Traces: records of what ran when in a training run, read back from their
/// files, and what they say of it: times of ops, critical paths, waits, memory,
/// slow ranks.
namespace troupe::trace {

/// An op or a version of a variable, as the graph has it.
struct handle_info {
  std::string name; ///< "conv2d#4@cpu:1", "fc_0.w_0:v1@cpu:0"
  std::string type; ///< "conv2d"; of a variable: its name without version
  bool is_op = false;
  bool is_collective = false;
  std::uint32_t device = 0; ///< index into `graph_info::devices`
  /// "compute", "collective" or "fetch"; empty for a variable.
  std::string stream;
  /// Extents that the program declares, such as "[-1, 64]": -1 is the number of
  /// samples of the device. Of an op: those of its inputs, separated by
  /// semicolons. Empty if unknown.
  std::string shape;
  std::string results = {}; ///< of an op: the same of its outputs
  /// Of an op: what it is to do, such as "strides=[2, 2]". Empty if unknown.
  std::string attributes = {};
  /// Readiness messages that it gets in a step, the step's begin included. Not
  /// all edges send one: chains of others imply some. 0: unknown, or in another
  /// process.
  std::uint32_t messages = 0;
  /// Of an op: its name scope in the program ("op_namescope"), such as
  /// "/encoder/". Empty: none.
  std::string scope{};
};

/// `to` of step s + distance waits for `from` of step s.
struct edge_info {
  handle_id from = no_handle;
  handle_id to = no_handle;
  std::uint32_t distance = 0;
};

/// The graph that a process ran. With several processes, all have the same one,
/// and each runs the handles of its own devices.
struct graph_info {
  std::vector<std::string> devices;           ///< "cpu:0"
  std::vector<std::size_t> process_of_device; ///< empty: all in one process
  std::vector<handle_info> handles;           ///< by id
  std::vector<edge_info> edges;
};

/// What a process was.
struct run_info {
  std::string version; ///< of Troupe
  std::string command; ///< what was run, in words
  std::string host;
  std::uint64_t pid = 0;
  std::size_t process = 0; ///< its number in a run over several processes
  std::size_t processes = 1;
  std::size_t workers = 0;
  std::string strategy;
  trace_level level = trace_level::messages; ///< at the beginning
  /// Begin of the trace, in nanoseconds since 1970 (UTC), by the host's clock.
  std::int64_t begin_unix_ns = 0;
  /// 16 hexadecimal digits that all processes of a run over several share, and
  /// no other run has. Empty: unknown.
  std::string job = {};
};

/// Part of the start of a run: "read program", "build graph", "check",
/// "first step". Negative times lie before the begin of the trace.
struct phase {
  std::string name;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// What a worker's thread was in the middle of, when a dump was made.
struct worker_stack {
  std::size_t worker = 0;
  std::int64_t thread = 0; ///< as the system numbers it
  handle_id op = no_handle;
  step_id step = 0;
  bool is_help = false;      ///< it runs parts of an op of another worker
  std::int64_t since_ns = 0; ///< when it began the op
  std::int64_t taken_ns = 0; ///< when the stack was taken
  /// The calls, the innermost first. Of each but the first, the place to which
  /// a call returns.
  std::vector<code_place> frames;
  std::string missing; ///< why there are no frames; empty if there are
};

/// The trace of one process. Times are in nanoseconds since its begin.
struct process_trace {
  std::string file; ///< that it was read from, for messages; may be empty
  run_info run;
  graph_info graph;
  std::vector<phase> phases; ///< in the order in which they ended
  /// The application's actors, by number.
  std::vector<recorded_actor> actors;
  /// Types of the messages to them, by number: "('feed', int32)".
  std::vector<std::string> message_types;
  /// Ordered by time. `trace_event::time` is in nanoseconds here, not in ticks.
  std::vector<trace_event> events;
  /// Of the workers that ran an op at the moment of a dump, if those were
  /// asked.
  std::vector<worker_stack> stacks;
  /// Events that were overwritten before they could be written.
  std::uint64_t lost = 0;
  /// False if the file is cut or damaged (`unread_bytes` is not 0), or the
  /// process ended without closing it.
  bool is_complete = false;
  /// Bytes at the end of the file that could not be read.
  std::uint64_t unread_bytes = 0;

  /// The name of a handle; "start" for `no_handle`.
  std::string_view name_of(handle_id id) const;
  /// The handle; null for `no_handle` and for ids that the graph lacks.
  const handle_info* find(handle_id id) const noexcept;
  /// "feeder#12": the name of an actor and its number in its system, which two
  /// actors of one name do not share. "nobody" for `no_actor` and for actors
  /// that the trace lacks.
  std::string name_of_actor(actor_number which) const;
  /// "unknown" for a type that the trace lacks.
  std::string_view name_of_type(std::uint32_t type) const;
};

/// "feeder#12", with "@" and the node if the actor is of another process.
std::string full_name(const recorded_actor& actor);

} // namespace troupe::trace
