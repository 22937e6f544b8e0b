// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor_hooks.hpp>
#include <troupe/actors/wait_chain.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/graph/ssa_builder.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace caf {
class actor_system;
} // namespace caf

namespace troupe {

namespace actors {
struct executor_access;
/// Ops that take less than this on average are done sooner by the worker that
/// makes them ready than by several that fetch them from each other.
inline constexpr std::uint64_t short_op_ns = 250;
/// So many steps of such ops in a row let the next ones stay on one worker.
inline constexpr std::uint32_t short_steps_before_gathering = 8;
} // namespace actors

/// Tensors by variable name: plain, in host memory, of the whole batch; axis 0
/// counts samples, or the rows of sequences if the tensor has levels: then each
/// outermost sequence is a sample. The executor scatters them over the devices.
/// The name of a persistable variable (a learning rate) gives every device the
/// whole value, which stays; such a step begins when those before it have
/// ended.
using feed_map = std::map<std::string, tensor, std::less<>>;

/// One process of a run over several. All processes make an executor of the
/// same program with the same options (but `process`) on the same parameters,
/// and submit the same steps with the same feeds; each runs the handles of its
/// devices. When one is lost or leaves, the run of all ends.
struct node_options {
  std::vector<std::size_t> process_of_device; ///< one per device
  std::size_t process = 0;                    ///< which one this is
  /// Of process 0: 127.0.0.0/8 or ::1 in figures, or "localhost".
  std::string host = "127.0.0.1";
  std::uint16_t port = 0; ///< of process 0; it may ask for any with 0
  /// Where process 0 puts the pass that lets the others in, and these find it:
  /// a folder that its owner alone may enter. Empty: /tmp/troupe-UID.
  std::string pass_folder = {};
  /// Process 0: called with the port once it listens.
  std::function<void(std::uint16_t port)> listening = {};
  int timeout_ms = 30000; ///< for all processes to join

  /// How many processes the run has: the largest number that is named, plus 1.
  std::size_t processes() const;
};

/// How a program is run. Two of these that are equal give equal results, bit by
/// bit, on machines with the same instructions.
struct executor_options {
  std::vector<device_id> devices{device_id{}};
  /// Workers of an actor system that the executor makes for itself; 0: one
  /// per core. Never more than the cores.
  int threads = 0;
  graph::merge_strategy strategy = graph::merge_strategy::all_reduce;
  graph::gradient_scale scale = graph::gradient_scale::coeff;
  std::string loss = {}; ///< empty: found in the program, if it trains
  /// Variables that `run` may be asked for, beside the loss.
  std::vector<std::string> fetches = {};
  /// Steps that may overlap: from 1 to 65536.
  std::uint32_t steps_in_flight = 2;
  std::uint64_t seed = 0; ///< of dropout and other random ops
  /// Parameters and statistics; null: the executor makes a scope of its own.
  /// Executors that update one on the same devices may take turns; one that
  /// updates it on fewer devices ends the use of those before: their steps
  /// fail.
  std::shared_ptr<scope> parameters = {};
  /// Kernels to run; null: those of the devices' backends. None may wait for
  /// what another op does, but by the graph's edges: that op may be behind it
  /// on its worker.
  std::shared_ptr<const kernel_table> kernels = {};
  /// Passes that rewrite the program, and how gradients are merged.
  graph::lowering_options lowering = {};
  /// Split the graph over processes; the losses of other processes' devices
  /// are then unknown here (NaN). An own `system` must have loaded CAF's
  /// middleman.
  std::optional<node_options> nodes = {};
  /// Run the actors in this system (it must outlive the executor); null: a
  /// system of the executor's own, with Troupe's scheduling policy.
  caf::actor_system* system = nullptr;
  executor_hooks hooks = {}; ///< of tests, benchmarks and tools
};

/// What one step gave.
struct step_result {
  step_id step = 0;
  /// Mean loss of each device's shard; NaN for a device without samples. Empty
  /// if the program has no loss.
  std::vector<double> losses;
  /// Mean of the known `losses` weighted by samples: the loss of the whole
  /// batch. NaN if the program has none.
  double loss = 0;
  /// Samples per device.
  std::vector<std::int64_t> samples;
  /// Fetched variables, one tensor per device in host memory; a device without
  /// samples has a tensor without memory, except for persistable variables.
  std::map<std::string, std::vector<tensor>, std::less<>> fetched;
  double ms = 0; ///< from admission to end

  /// The devices' tensors of `name` joined along axis 0 (the whole batch
  /// again); scalars of several devices become [devices]. Throws
  /// error(not_found) if it was not fetched.
  tensor merged(std::string_view name) const;
};

/// Counts of a running graph.
struct executor_stats {
  std::size_t op_actors = 0;
  std::size_t variable_actors = 0;
  std::size_t stream_actors = 0;
  std::size_t messages_per_step = 0; ///< readiness messages, starts included
  std::size_t message_edges = 0;     ///< edges of these that are CAF messages
  std::size_t pending_ops = 0; ///< may end behind the return of their launch
  std::uint64_t messages = 0;  ///< since the executor was made
  std::uint64_t steps = 0;     ///< ended, failed ones included
  /// Of these, those whose ops were kept on one worker because they are tiny:
  /// less than `actors::short_op_ns` on average.
  std::uint64_t gathered_steps = 0;
  /// Jobs that threads without a seat put into the injection list, the only one
  /// that all workers share, since the actor system's workers began; its other
  /// executors included. Ops in the course of a step never go through it.
  std::uint64_t injected_jobs = 0;
  std::vector<std::size_t> peak_bytes; ///< arena peak per device
};

/// Runs a program on several devices, each op and variable handle of its SSA
/// graph an actor.
///
/// The constructor builds and checks the graph, makes the actors and copies
/// persistable variables that a replica lacks from the first device. All input
/// is checked before the first message is sent.
///
/// Errors: a step that fails ends with the error of the op that failed first
/// (by time); ops behind it and steps submitted already do not run. Parameters
/// may then hold the updates of ops that had run before. The executor can run
/// again at once or be destroyed at any moment.
///
/// Thread rule: one thread at a time; `cancel` from any thread. `run`, `submit`
/// and `wait` in a handler of an actor are allowed: the handler's thread works
/// for the step meanwhile, but its actor answers nobody.
class executor {
public:
  /// @param main the program, e.g. `network.main`; the graph refers to its
  /// names and descriptions.
  /// Throws error(unsupported_op) listing all ops of all blocks that have no
  /// kernel,
  /// error(not_found | graph_invalid | invalid_argument) as the builder does.
  explicit executor(std::shared_ptr<const graph::program> main,
                    executor_options options = {});
  /// The same of a copy of `main`.
  explicit executor(const graph::program& main, executor_options options = {});
  ~executor(); ///< cancels and waits for what is running
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// Runs one step on a batch of n >= 1 samples and waits for it.
  /// @param feeds a tensor per fed variable  @param fetches names among
  /// `executor_options::fetches`; the loss needs none.
  /// Throws what the step failed with, or error(not_found | shape_mismatch |
  /// dtype_mismatch) before anything runs.
  step_result run(const feed_map& feeds,
                  std::span<const std::string> fetches = {});

  /// Admits a step and returns its number without waiting, unless
  /// `steps_in_flight` are under way: then waits for the oldest to end first.
  step_id submit(const feed_map& feeds,
                 std::span<const std::string> fetches = {});
  /// Waits for a submitted step; each once, in the order of submission.
  step_result wait(step_id step);
  /// The same into a result of an earlier step, in the memory that it has: a
  /// steady run allocates nothing.
  void wait(step_id step, step_result& result);

  /// Makes steps under way end with error(cancelled) as soon as the kernels
  /// that run now return. Later steps run again. Any thread.
  void cancel() noexcept;

  /// Brings `parameters()` up to date: with the strategies reduce and
  /// replicate, devices that do not share parameters keep optimizer state on
  /// the one that updates it; with
  /// `lowering_options::filters_in_blocks`, here or in another
  /// executor on the scope, filters lie in a layout of kernels. Call it before
  /// saving; no step may be under way.
  void synchronize_parameters();

  /// The graph that runs; it stays as it is.
  const graph::ssa_graph& graph() const noexcept;
  /// What a handle waits for in the oldest step under way in which it is not
  /// done: a chain of handles, down to an op that runs, a launch that is not
  /// complete, or a message that has not arrived. Steps may go on meanwhile;
  /// the chain is what was seen. Any thread. Throws error(not_found) if there
  /// is no such handle in this process.
  actors::wait_chain why(handle_id id) const;
  /// What the end of the oldest step under way waits for; empty if there is no
  /// such step. Any thread.
  actors::wait_chain why() const;
  /// What happens in the steps, recorded at the level that it is set to, which
  /// may change at any time. Any thread.
  recorder& trace() noexcept;
  /// The scope of `executor_options::parameters`, or the executor's own. No
  /// step may be under way when it is used.
  scope& parameters() noexcept;
  /// Figures of the graph and of the steps that have ended.
  executor_stats stats() const;

private:
  friend struct actors::executor_access;
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Runs a startup program in order on one device, filling `parameters`.
/// Random initialisers draw from `seed` where they have none of their own.
void run_startup(const graph::program& startup, scope& parameters,
                 std::uint64_t seed = 0, const kernel_table* kernels = nullptr);

} // namespace troupe
