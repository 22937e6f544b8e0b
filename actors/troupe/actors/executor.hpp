// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/delivery_shuffle.hpp>
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

/// In which form readiness travels along an edge. Results are bit-equal.
enum class edge_form : std::uint8_t {
  counter, ///< a counting mailbox in this process: the fast form
  message, ///< a CAF message in the receiver's ordinary door
  mixed,   ///< every other edge a message (tests)
};

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

  std::size_t processes() const;
};

/// A graph -> graph function, applied after building and before checking.
using graph_pass = std::function<graph::ssa_graph(graph::ssa_graph)>;

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
  /// Steps that may overlap, at least 1.
  std::uint32_t steps_in_flight = 2;
  std::uint64_t seed = 0;    ///< of dropout and other random ops
  bool deterministic = true; ///< sums over devices in device order
  /// End the step at the first op that makes a NaN or an infinity.
  bool check_nan = false;
  bool dry_run = false; ///< schedule everything, run no kernel
  std::size_t fuse_all_reduce_bytes = 256 * 1024;
  /// Batch norms that train take their statistics over all devices, so that
  /// several compute what one does on the whole batch; else each device has its
  /// own, but for ops of type sync_batch_norm. Not with merge_strategy::none.
  bool sync_batch_norm = false;
  /// Batch norms, sums and relus run as one op, and their gradients, where
  /// nobody fetches what is between (graph/passes/fuse_batch_norm.hpp), if
  /// there are kernels for that. Results are the same bit by bit.
  bool fuse_batch_norms = true;
  /// What batch norms with a relu behind them wrote is computed again for the
  /// backward pass instead of kept (graph/passes/recompute_activations.hpp), if
  /// there are kernels for that. Results are the same bit by bit.
  bool recompute_activations = true;
  /// Values of which only the shape is read in the end give their memory back
  /// before (graph/passes/shape_inputs.hpp), if the kernels can do that.
  bool separate_shape_inputs = true;
  /// Gradients of activations and softmax overwrite the gradient that they read
  /// if nobody else does (graph/passes/write_in_place.hpp). Results are the
  /// same bit by bit.
  bool write_in_place = true;
  /// Filters that only convolutions read, and the state of their updates, stay
  /// in the layout of convolutions from step to step
  /// (graph/passes/filters_in_blocks.hpp). In `parameters` they then are plain
  /// again after `synchronize_parameters`: read no elements there before. Other
  /// executors on the scope may. Not over processes. Results are the same bit
  /// by bit.
  bool filters_in_blocks = false;
  /// Devices that share their memory (kernels/memory/shared_memory.hpp) use one copy
  /// of what at most one of them writes: with the strategies reduce and
  /// replicate parameters are not broadcast. Not over processes. Results are
  /// the same bit by bit.
  bool share_parameters = true;
  /// One of such devices makes the gradient of a large matrix at once from the
  /// samples of all where that moves less than merging what each makes
  /// (graph/gathered_product.hpp), if there are kernels for that. Not over
  /// processes. Results are the same but for rounding.
  bool gather_products = true;
  /// With the strategies reduce and replicate, updates on such devices merge or
  /// gather the gradients that they alone read (graph/merging_update.hpp), if
  /// there are kernels for that. Not over processes. Results are the same bit
  /// by bit.
  bool merge_in_updates = true;
  /// Samples of a step over all devices, if known, for such decisions; steps
  /// may have others. 0: unknown.
  std::int64_t batch = 0;
  edge_form form = edge_form::counter;
  /// With edges as counters: so many of them, spread evenly, are CAF messages
  /// all the same. Shows what few such edges cost the others (tests, bench).
  std::size_t message_edges = 0;
  /// So many of the program's ops, spread evenly, are treated as ops that may
  /// end behind the return of their launch. Shows the same.
  std::size_t pending_ops = 0;
  std::optional<delivery_shuffle> shuffle = {};
  std::vector<graph_pass> passes = {};
  /// Skips the proof that all accesses are ordered (tests of the proof).
  bool skip_hazard_check = false;
  /// What is recorded from the first step on; see `executor::trace`.
  trace_level trace = trace_level::off;
  /// Parameters and statistics; null: the executor makes a scope of its own.
  /// Executors that update one on the same devices may take turns; one that
  /// updates it on fewer devices ends the use of those before: their steps
  /// fail.
  std::shared_ptr<scope> parameters = {};
  /// Kernels to run; null: `cpu_kernels()`. None may wait for what another op
  /// does, but by the graph's edges: that op may be behind it on its worker.
  std::shared_ptr<const kernel_table> kernels = {};
  /// The devices themselves, one per entry of `devices`; empty: made by
  /// `make_devices`. Shared so that fetched tensors may outlive the executor.
  std::vector<std::shared_ptr<device>> device_instances = {};
  /// A collective is a handle per device instead of one for all: what devices
  /// with streams of their own need (tests). Results are the same bit by bit.
  bool rank_collectives = false;
  /// A place per device: the graph is split as it is over processes, but all
  /// places are in this one and exchange values in memory (tests). Empty: one.
  std::vector<std::uint32_t> places = {};
  /// Split the graph over processes; the losses of other processes' devices
  /// are then unknown here (NaN). An own `system` must have loaded CAF's
  /// middleman.
  std::optional<node_options> nodes = {};
  /// Run the actors in this system (it must outlive the executor); null: a
  /// system of the executor's own, with Troupe's scheduling policy.
  caf::actor_system* system = nullptr;
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
  /// the one that updates it; with `filters_in_blocks`, here or in another
  /// executor on the scope, filters lie in a layout of kernels. Call it before
  /// saving; no step may be under way.
  void synchronize_parameters();

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
  scope& parameters() noexcept;
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
