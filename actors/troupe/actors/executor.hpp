// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor_hooks.hpp>
#include <troupe/actors/node_options.hpp>
#include <troupe/actors/steps/run_pace.hpp>
#include <troupe/actors/trace_options.hpp>
#include <troupe/actors/wait_chain.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/graph/passes/place_handles.hpp>
#include <troupe/graph/program.hpp>
#include <troupe/graph/ssa_builder.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/scope.hpp>
#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
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
/// If ops take less than this on average, one worker may finish a step sooner
/// than several workers that steal ops from each other.
inline constexpr std::uint64_t short_op_ns = 250;
} // namespace actors

class executor;
class outside_op;

/// Tensors by variable name. Each is plain, in host memory, and holds the whole
/// batch. Axis 0 counts samples. If the tensor has levels, axis 0 counts rows
/// and each outermost sequence is a sample. The executor scatters the tensors
/// over the devices.
///
/// In a run over several processes, the tensors hold the samples of this
/// process's devices only, in the order of devices. A process without samples
/// feeds tensors without samples, or nothing.
///
/// A persistable variable (such as a learning rate) can also be fed. Every
/// device then gets the whole value and keeps it. Such a step begins only when
/// all earlier steps have ended. All processes feed it.
using feed_map = std::map<std::string, tensor, std::less<>>;

/// How a program is run. Equal options give bit-identical results on machines
/// with the same instruction set.
struct executor_options {
  std::vector<device_id> devices{device_id{}};
  /// Number of workers if the executor makes its own actor system, at most one
  /// per core. 0: one per core.
  int threads = 0;
  graph::merge_strategy strategy = graph::merge_strategy::all_reduce;
  graph::gradient_scale scale = graph::gradient_scale::coeff;
  /// How streams of GPUs wait for each other, unless `hooks` has the devices.
  wait_mode waits_by = wait_mode::event;
  /// Devices add up values in their order, also GPUs, where NCCL is faster but
  /// has an order of its own; see `device_options`.
  bool sums_in_order = false;
  /// Steps on a device that can record (a CUDA device) are recorded and then
  /// run as one launch, unless the graph or a kernel does not allow it; see
  /// `executor_stats::not_captured`. Results are the same, bit by bit.
  bool capture = true;
  /// Number of steps whose gradients one update of the parameters adds up, at
  /// least 1. Each device adds them up on its own; gradients are merged over
  /// devices only in steps that update the parameters, and only these run the
  /// optimizer, its schedules and what clips gradients. The update uses the
  /// mean over the samples of all its steps: with `gradient_scale::coeff`, it
  /// is that of one step with all these samples. In other steps a fetched
  /// gradient has no value.
  std::uint32_t accumulate = 1;
  std::string loss = {}; ///< empty: found by `find_loss` if the program trains
  /// Variables that `run` can fetch, in addition to the loss.
  std::vector<std::string> fetches = {};
  /// Number of steps that may overlap, from 1 to 65536.
  std::uint32_t steps_in_flight = 2;
  std::uint64_t seed = 0; ///< for dropout and other random ops
  /// Feeds that a device reaches where they lie, such as those in host memory
  /// for a CPU device, are not copied: steps read the caller's memory. Nobody
  /// may write to it until the step has ended; the caller may let go of its
  /// tensors before. Feeds of persistable variables are copied all the same.
  bool borrow_feeds = false;
  /// Parameters and statistics. Null: the executor makes its own scope. Several
  /// executors on the same devices may take turns updating one scope. An
  /// executor that updates the scope on fewer devices makes the earlier
  /// executors unusable: `submit` and `run` throw error(invalid_argument) that
  /// names the devices of both.
  std::shared_ptr<scope> parameters = {};
  /// Kernels to run. Null: those of the devices' backends. A kernel must not
  /// block on another op, because that op may be queued behind it on the same
  /// worker. Only the graph's edges order ops.
  std::shared_ptr<const kernel_table> kernels = {};
  /// Op types of the main block that are computed outside of the graph
  /// (outside_op.hpp), in place of a kernel. They take part in no gradient, run
  /// on devices in host memory, and not in blocks of loops and branches.
  std::map<std::string, std::shared_ptr<outside_op>, std::less<>> outside_ops =
    {};
  /// Passes that rewrite the program, and how gradients are merged.
  graph::lowering_options lowering = {};
  /// Handles that run on other devices than their own, also in other processes.
  /// Results stay the same, bit by bit.
  std::vector<graph::handle_place> places = {};
  /// A trace of this executor's steps. Not set: the file that the environment
  /// variable TROUPE_TRACE names, if there is one and no executor of the
  /// process has taken it before.
  std::optional<trace_options> trace = {};
  /// What is recorded for `executor::dump_trace`.
  flight_recorder_options flight_recorder = {};
  /// Called once, with the executor, at the end of its construction. What it
  /// returns is destroyed before the executor ends: first of all, while steps
  /// may still run. So what follows an executor can be given to one that others
  /// make, such as a trainer or a predictor: a `step_watchdog`, a board's shown
  /// run, an object that keeps the executor's address behind a lock.
  ///
  /// The result may be null. It must be the only reference. It uses only what
  /// any thread may call, because steps are begun by who made the executor.
  /// Both calls come on the threads that make and destroy the executor. What
  /// this throws, the constructor throws.
  std::function<std::shared_ptr<void>(executor&)> attach = {};
  /// If set, the graph is split over processes. If `system` is also set, CAF's
  /// middleman must be loaded in it.
  std::optional<node_options> nodes = {};
  /// Actor system to run the actors in. It must outlive the executor. Null: the
  /// executor makes its own system, with Troupe's scheduling policy.
  caf::actor_system* system = nullptr;
  executor_hooks hooks = {}; ///< for tests, benchmarks and tools
};

/// The result of one step.
struct step_result {
  step_id step = 0;
  /// Mean loss of each device's shard, also of devices in other processes; NaN
  /// for a device without samples. Empty if the program has no loss.
  std::vector<double> losses;
  /// Mean of `losses`, weighted by samples: the loss of the whole batch. NaN if
  /// the program has no loss.
  double loss = 0;
  /// Samples per device.
  std::vector<std::int64_t> samples;
  /// Fetched variables: one tensor per device, in host memory. A device without
  /// samples has a tensor without memory, unless the variable is persistable.
  /// So has a device of another process.
  std::map<std::string, std::vector<tensor>, std::less<>> fetched;
  /// Whether the step updated the parameters: see
  /// `executor_options::accumulate`.
  bool updates = true;
  double ms = 0; ///< time from admission to end

  /// Concatenates the devices' tensors of `name` along axis 0, which gives the
  /// whole batch. Scalars of several devices become a tensor of shape
  /// [devices]. Throws error(not_found) if `name` was not fetched.
  tensor merged(std::string_view name) const;
};

/// How a step went that nobody waited for.
struct step_outcome {
  step_result result;           ///< of a step that has not failed
  std::optional<error> failure; ///< what `executor::wait` would have thrown
};

/// Counts of a running graph. Actors and messages are those of this process.
struct executor_stats {
  std::size_t op_actors = 0;
  std::size_t variable_actors = 0;
  std::size_t stream_actors = 0;
  std::size_t messages_per_step = 0; ///< readiness messages, including starts
  std::size_t message_edges = 0; ///< how many of those edges are CAF messages
  /// ops that may complete after their launch returns
  std::size_t pending_ops = 0;
  std::uint64_t messages =
    0; ///< since the executor was made; see `captured_steps`
  std::uint64_t steps = 0; ///< steps that ended, including failed ones
  /// Steps that ran on one worker because their ops are tiny (less than
  /// `actors::short_op_ns` on average): one worker is faster, or was tried.
  std::uint64_t single_worker_steps = 0;
  /// Steps that were one launch of what was recorded.
  std::uint64_t captured_steps = 0;
  /// Why steps of a device that can record are not captured, such as the op
  /// that does not allow it. Empty: they are, or too few have run.
  std::string not_captured = {};
  std::uint64_t copied_feed_bytes = 0; ///< of feeds, over all devices
  /// Jobs that threads other than workers have put into the injection list, the
  /// only list that all workers share. Counted since the actor system started,
  /// for all its executors. Ops made ready during a step never go through this
  /// list.
  std::uint64_t injected_jobs = 0;
  std::vector<std::size_t> peak_bytes; ///< arena peak per device
};

/// A text that another process of a run has sent.
struct process_note {
  std::size_t from = 0; ///< its process
  std::string text;
};

/// Runs a program on several devices. Each op handle and each variable handle
/// of its SSA graph is an actor.
///
/// The constructor builds and checks the graph and makes the actors. It copies
/// persistable variables from the first device to replicas that lack them. All
/// input is checked before the first message is sent.
///
/// Errors: a failed step reports the error of the op that failed first in time.
/// Ops that depend on it and steps submitted after it do not run. Updates that
/// ran before the failure stay in the parameters. The executor can run new
/// steps at once, or be destroyed at any time. With
/// `executor_options::accumulate`, the gradients of a failed step's update are
/// lost, also those of earlier steps: the next step begins a new update. In a
/// run over several processes, the other steps of that update fail first,
/// because other processes may have added up the failed step.
///
/// An executor with an actor system of its own may be in static storage: it
/// ends when the process exits.
///
/// Thread rule: one thread at a time; `cancel` from any thread. A call during
/// another one throws error(invalid_argument). Steps cannot begin in a kernel
/// of the same actor system: `submit` and `run` then throw the same. An actor's
/// handler may call `run`, `submit` and `wait`. Its thread then works on the
/// step, and its actor handles no other message until the call returns.
class executor {
public:
  /// @param main the program, e.g. `network.main`; the graph refers to its
  /// names and descriptions.
  ///
  /// Throws error(unsupported_op) listing all ops without a kernel, in any
  /// block, error(not_found | graph_invalid | invalid_argument) as the builder
  /// does, and error(invalid_argument) for options out of range.
  explicit executor(std::shared_ptr<const graph::program> main,
                    executor_options options = {});
  /// The same, with a copy of `main`.
  explicit executor(const graph::program& main, executor_options options = {});
  ~executor(); ///< cancels running steps and waits for them
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// Runs one step on a batch of n >= 1 samples and waits for it.
  /// @param feeds a tensor per fed variable; none if the program has no feeds
  /// @param fetches names from `executor_options::fetches`; the loss is always
  ///   returned
  /// Throws the error of the failed step, or error(not_found | shape_mismatch |
  /// dtype_mismatch) before anything runs.
  step_result run(const feed_map& feeds = {},
                  std::span<const std::string> fetches = {});

  /// Admits a step and returns its number without waiting. If `steps_in_flight`
  /// steps are running, it first waits for the oldest of them to end.
  step_id submit(const feed_map& feeds = {},
                 std::span<const std::string> fetches = {});
  /// Waits for a submitted step. Call it once per step, in the order of
  /// submission.
  step_result wait(step_id step);
  /// The same, but reuses the memory of `result`, the result of an earlier
  /// step. A steady run then allocates nothing.
  void wait(step_id step, step_result& result);

  ///@{
  /// Admits a step as `submit` does. Nobody waits for it: `done` is called
  /// once, on the thread that ends the step, also if the step fails or is
  /// cancelled. Calls come in the order of steps. Steps begin and end while no
  /// thread is in the executor, so an event loop or an actor can run them
  /// without blocking, if it admits no more than
  /// `executor_options::steps_in_flight` at a time.
  ///
  /// `done` must be short, because it holds up a worker, and must not call or
  /// destroy this executor. What it throws is dropped. It is destroyed after
  /// the call. The destructor returns after the last call.
  ///
  /// Throws as `submit` does, before anything runs; `done` is then not called.
  void run_async(const feed_map& feeds, std::span<const std::string> fetches,
                 std::function<void(step_outcome)> done);
  /// The same. The future gets the result, or the step's error.
  std::future<step_result> run_async(const feed_map& feeds = {},
                                     std::span<const std::string> fetches = {});
  ///@}

  /// The samples of `batch` that this process feeds if the batch is split over
  /// the devices of all processes as over those of one: shard sizes differ by
  /// at most one. Persistable variables, and feeds that are not split, are
  /// whole. The result may share the batch's memory. In a run of one process
  /// this is `batch`. Throws as `run` does.
  feed_map own_share(const feed_map& batch) const;

  /// Makes the next step update the parameters, with the gradients that have
  /// been added up so far: for the last batch of an epoch, if the number of
  /// batches is no multiple of `executor_options::accumulate`. Without that,
  /// every step updates the parameters. In a run over several processes, all
  /// call it before the same step.
  void update_in_next_step();

  /// Makes the next step draw the random numbers of step `number` of a run that
  /// this one continues, and later steps those that follow. The step begins a
  /// new update: gradients that were added up are dropped. In a run over
  /// several processes, all call it. Throws error(invalid_argument) while a
  /// step is running.
  void continue_from(std::uint64_t number);

  /// Makes running steps end with error(cancelled) as soon as the running
  /// kernels return. Steps submitted later run normally. Any thread.
  void cancel() noexcept;

  /// True if a step is running: it was submitted and has not been waited for,
  /// or one of `run_async` has not been delivered.
  bool is_running() const;

  /// Brings `parameters()` up to date. Call it before saving. Throws
  /// error(invalid_argument) while a step is running. It does two things:
  /// - With the strategies reduce and replicate, devices that do not share
  ///   parameters keep optimizer state only on the device that updates it. The
  ///   state is copied to `parameters()`; in a run over several processes, to
  ///   those of process 0. There, all processes call this after the same number
  ///   of steps. It waits for them, and throws error(peer_failure) if one is
  ///   lost.
  /// - With `lowering_options::kernel_layouts`, here or in another executor on
  ///   the scope, parameters may be stored in a layout of the kernels. They
  ///   become plain.
  void synchronize_parameters();

  /// Writes the persistable variables of the program, parameters and optimizer
  /// state, to one file, as `troupe train --save` writes `params.pdiparams`
  /// (`graph::save_parameters`). First does what `synchronize_parameters` does,
  /// and throws as it does. The file is written whole or not at all: otherwise
  /// throws error(io_failure), and error(not_found) for a variable without a
  /// value. In a run over several processes, all call it after the same number
  /// of steps; only process 0, which has all values, writes.
  void save(const std::filesystem::path& file);
  /// Replaces the values of the same variables, on all devices. The next step
  /// begins a new update, as after `continue_from`. Other executors on the
  /// scope go on with the new values if they are on the same devices; values
  /// that this executor cannot replace are discarded
  /// (`executor_options::parameters`).
  ///
  /// If this throws, nothing has changed. Throws what `graph::load_parameters`
  /// throws for a file that is missing, damaged, or of another program, and
  /// error(invalid_argument) while a step is running. In a run over several
  /// processes, all call it, with the same values, after the same number of
  /// steps.
  /// @param path a file that `save` has written, or a folder as for
  ///   `graph::load_parameters`
  void load(const std::filesystem::path& path);

  /// Throws error(invalid_argument) if a parameter, or another variable that
  /// devices must agree on, has different values on different devices. The
  /// error names the first such variable and the devices with an odd value. A
  /// way to notice a damaged memory or a faulty processor. Throws the same
  /// error while a step is running. In a run over several processes, all call
  /// it after the same number of steps.
  void require_same_replicas();

  /// The graph that runs. It never changes. The executor does not keep those
  /// edges that inputs and outputs imply, so the first call makes a copy with
  /// all edges. Any thread.
  const graph::ssa_graph& graph() const;
  /// Why a handle is not done, in the oldest running step in which it is not.
  /// Returns a chain of handles that ends with a running op, an incomplete
  /// launch, a ready op whose stream no worker has come to yet, or a message
  /// that has not arrived. If the handle is done in all running steps, the
  /// chain is one link that says so. The chain is a snapshot: steps go on
  /// meanwhile. Throws error(not_found) if this process has no such handle. Any
  /// thread.
  actors::wait_chain why(handle_id id) const;
  /// Why the oldest running step has not ended. Empty if no step is running.
  /// Any thread.
  actors::wait_chain why() const;
  /// The collectives that devices of this process have begun and that are not
  /// over, in order by device: which ranks have arrived, which are missing, and
  /// since when. Rank i is device i, also of another process. Those that one op
  /// merges for all devices are not among them. Any thread.
  std::vector<actors::collective_wait> collectives() const;
  ///@{
  /// Texts between the processes of a run, for what the application wants to
  /// know of the others; they take the way of control messages, beside the
  /// values. Notes of one process come in the order in which they were sent.
  /// Those to a process that is gone are dropped, as are longer ones than 256
  /// KiB and those that come while 256 have not been taken. `send_note` does
  /// nothing in a run of one process, or if `process` is this one. Any thread.
  void send_note(std::size_t process, const std::string& text);
  std::vector<process_note> take_notes();
  ///@}
  /// The recorder of what happens in steps. A `level_request` raises its level,
  /// an `event_reader` reads its events. Any thread.
  recorder& trace() noexcept;
  /// The same, for actors of the application (traced_actor.hpp), which may
  /// outlive the executor. When the executor ends, the level falls to `off` and
  /// stays there: nobody may ask for another one. Any thread.
  std::shared_ptr<recorder> shared_trace() const;
  /// What a trace of this run says before its first event: the process and its
  /// graph. Any thread.
  trace::process_trace trace_head() const;
  ///@{
  /// Pauses the run between steps, and slows it down. While it is paused,
  /// `submit` and `run` wait; `cancel` ends that with error(cancelled). Any
  /// thread.
  run_pace& pace() noexcept;
  const run_pace& pace() const noexcept;
  ///@}
  /// Writes what the recorder holds to a .trt file: the latest events of each
  /// thread, at most `recorder::default_events_per_ring`. Steps go on
  /// meanwhile. Returns the file's name. Throws error(io_failure), and leaves
  /// what could be written. Any thread.
  /// @param file is replaced. Empty: a new file with a name as in
  ///   `executor_options::flight_recorder`
  std::filesystem::path
  dump_trace(const std::filesystem::path& file = {}) const;
  /// The call stacks of the workers that run an op now, as a dump has them.
  /// Empty without `flight_recorder_options::stacks`. Waits for the workers'
  /// answers. Any thread.
  std::vector<trace::worker_stack> busy_stacks() const;
  /// Begins to write a trace while steps run, as `executor_options::trace` does
  /// from the start. Returns the file's name. Throws error(invalid_argument) if
  /// a trace is being written, error(io_failure) if the file cannot be. Any
  /// thread.
  /// @param wanted if it names no file: a new file named troupe-PID.trt, or
  ///   troupe-PID-N.trt, in the current folder
  std::filesystem::path start_trace(const trace_options& wanted);
  /// Writes the last events of the trace and closes its file. Returns the
  /// file's name, or nothing if no trace is being written. Throws
  /// error(io_failure) if the file has been given up. Any thread.
  std::optional<std::filesystem::path> stop_trace();
  /// Why the file of the trace has been given up, if it was. Any thread.
  std::optional<std::string> trace_failure() const;
  /// The scope of `executor_options::parameters`, or the executor's own. Use it
  /// only while no step is running.
  scope& parameters() noexcept;
  /// Number of steps that have ended, including failed ones. Any thread.
  std::uint64_t steps_ended() const noexcept;
  /// Statistics of the graph and of the steps that have ended.
  executor_stats stats() const;

private:
  friend struct actors::executor_access;
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Runs a startup program in order on one device and fills `parameters`. Random
/// initializers without a seed of their own use `seed`.
void run_startup(const graph::program& startup, scope& parameters,
                 std::uint64_t seed = 0, const kernel_table* kernels = nullptr);

} // namespace troupe
