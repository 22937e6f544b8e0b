// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/event_reader.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::apps {

/// Time of the ops of one type.
struct op_time {
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0; ///< including the ops of their blocks
  std::uint64_t self_ns = 0;  ///< without the ops of their blocks
  /// Bytes read and written to change layouts, without the ops of their blocks.
  std::uint64_t layout_bytes = 0;
};

/// The result of a profile. Times are added up over workers, so ops that ran
/// concurrently each count in full.
struct profile_times {
  std::uint64_t steps = 0; ///< number of steps that count
  /// From the end of the steps that do not count to the end of the last one.
  std::uint64_t wall_ns = 0;
  std::map<std::string, op_time> ops;
  std::vector<std::uint64_t> busy_ns; ///< per worker, time in ops
  using type_by_parameter = std::map<std::string, std::string>;
  /// Types of the ops that make the gradient of a parameter for all devices
  /// (graph/gathered_product.hpp, graph/merging_update.hpp).
  type_by_parameter gathered_by = {};
  /// Types of the updates that merge or gather the gradient of a parameter.
  type_by_parameter merged_by = {};
};

/// Measures where the steps of one executor spend their time. The recorder
/// gives the begin and end of ops. The kernels report ops that run within
/// another op: those of a branch or a loop. The first steps do not count,
/// because kernels choose their code and memory grows in them.
///
/// Use: give `watched_kernels()` to an executor that records ops, call `begin`
/// with the executor's graph and recorder and run steps. After each step call
/// `take`, before newer events overwrite older ones.
///
/// If the launch of an op is pending, only the launch counts. When a worker
/// helps with an op of another worker, the time counts for the op and for the
/// helper.
///
/// Thread rule: one thread; the watched kernels run on any worker.
class op_profile {
public:
  /// @param workers number of workers of the executor
  /// @param skipped number of first steps that do not count
  op_profile(std::size_t workers, std::uint64_t skipped);
  ~op_profile();

  /// The kernels of `base`, which report each run to this profile. They must
  /// not outlive it.
  std::shared_ptr<const kernel_table>
  watched_kernels(std::shared_ptr<const kernel_table> base);
  /// Stores the op type of each handle. The graph need not outlive the call.
  void begin(const graph::ssa_graph& graph);
  /// The same; `take` reads the events that `from` records from now on.
  void begin(const graph::ssa_graph& graph, recorder& from);

  /// Takes the recorder's events since the last call. The recorder must live.
  void take();
  /// The same for events with times in nanoseconds.
  void take(std::span<const trace_event> events);

  profile_times times() const;

private:
  class worker_log;
  class watched_kernel;
  using type_number = std::uint32_t;

  void note_merging(const graph::op_desc& op);
  void in_nanoseconds(profile_times& all) const;

  worker_log* here() noexcept;
  type_number number_of(std::string_view type);

  std::uint64_t skipped_;
  std::uint64_t skipped_end_ = 0; // of the skipped steps, in ticks
  recorder* from_ = nullptr;
  std::optional<event_reader> events_;
  double ns_per_tick_ = 1;
  std::map<std::string, type_number, std::less<>> types_;
  std::vector<type_number> type_of_handle_;
  profile_times::type_by_parameter gathered_by_;
  profile_times::type_by_parameter merged_by_;
  std::vector<std::unique_ptr<worker_log>> logs_; // one per worker
};

} // namespace troupe::apps
