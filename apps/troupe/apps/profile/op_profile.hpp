// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/recorder.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::apps {

/// Time that ops of one type took.
struct op_time {
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0; ///< the ops of their blocks included
  std::uint64_t self_ns = 0;  ///< without those
  /// Read and written to change layouts, without those.
  std::uint64_t layout_bytes = 0;
};

/// What a profile has seen. Times are of workers, so that ops that ran side by
/// side count each.
struct profile_times {
  std::uint64_t steps = 0; ///< that were counted
  std::uint64_t wall_ns = 0;
  std::map<std::string, op_time> ops;
  std::vector<std::uint64_t> busy_ns; ///< per worker, with ops
  using type_by_parameter = std::map<std::string, std::string>;
  /// Types of the ops that make the gradient of a parameter for all devices
  /// (graph/gathered_product.hpp, graph/merging_update.hpp).
  type_by_parameter gathered_by = {};
  /// Types of the updates that merge or gather the gradient of a parameter.
  type_by_parameter merged_by = {};
};

/// Measures where the steps of one executor spend their time: its recorder
/// tells when ops begin and end, the kernels themselves which ops of a branch
/// or a loop run within another. The first steps, in which kernels choose their
/// code and memory grows, do not count.
///
/// Use: give `watched_kernels()` to an executor that records ops, call `begin`
/// with the executor's graph, run steps, and `take` its recorder's events after
/// each, before newer ones overwrite them.
///
/// Of an op whose launch is pending the launch alone counts. What workers do to
/// help with an op of another one counts as that op's time and as theirs.
///
/// Thread rule: one thread.
class op_profile {
public:
  /// @param workers of the executor
  /// @param skipped steps that do not count
  op_profile(std::size_t workers, std::uint64_t skipped);
  ~op_profile();

  /// The kernels of `base`, each telling this profile when it runs. They must
  /// not outlive it.
  std::shared_ptr<const kernel_table>
  watched_kernels(std::shared_ptr<const kernel_table> base);
  /// Learns which op has which number. The graph may go afterwards.
  void begin(const graph::ssa_graph& graph);

  /// Counts what a recorder has recorded since the last call.
  void take(recorder& from);
  /// The same of events, whose times count as nanoseconds.
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
  double ns_per_tick_ = 1;
  std::map<std::string, type_number, std::less<>> types_;
  std::vector<type_number> type_of_handle_;
  profile_times::type_by_parameter gathered_by_;
  profile_times::type_by_parameter merged_by_;
  std::vector<std::unique_ptr<worker_log>> logs_; // one per worker
};

} // namespace troupe::apps
