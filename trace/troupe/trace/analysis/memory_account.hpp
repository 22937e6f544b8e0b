// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe::trace {

/// What an event did to the memory of a device.
struct memory_change {
  std::uint32_t device = 0;
  handle_id variable = no_handle;
  std::int64_t bytes = 0; ///< negative if memory was freed
};

/// Bytes that each temporary holds, and their sum by device. Counts temporaries
/// and those feeds that ops free; parameters are not in a trace. Everything
/// that tells of memory in a trace uses this account.
///
/// The level of a recording can change. Below `ops`, feeds are recorded, but
/// not who frees them. So when a step has ended in which no op was recorded,
/// all sums become zero, and feeds count again when ops are recorded.
class memory_account {
public:
  /// The trace must outlive this object.
  explicit memory_account(const process_trace& part);
  /// For events that are yet to come: feeds count once an op has freed one of
  /// their kind. The graph must outlive this object.
  explicit memory_account(const graph_info& graph);
  /// From now on, feeds count that are freed in these events, which are yet to
  /// come.
  void expect(std::span<const trace_event> events);

  /// Takes the trace's events in their order. Returns nothing for events that
  /// are not about memory that counts, and for handles that the graph lacks.
  /// What was allocated before the trace began, or in lost events, changes
  /// nothing when it is freed: no sum falls below zero.
  std::optional<memory_change> apply(const trace_event& e);
  /// Of a device.
  std::uint64_t bytes(std::size_t device) const { return of_device_[device]; }
  /// Of a handle.
  std::uint64_t held(handle_id id) const { return held_[id]; }

private:
  void note_level(const trace_event& e);

  const graph_info& graph_;
  std::vector<std::uint64_t> held_;
  std::vector<bool> is_freed_;
  std::vector<std::uint64_t> of_device_;
  bool knows_ops_ = true;      // false: they are not recorded
  std::uint32_t ops_step_ = 0; // the newest step with a recorded op
};

} // namespace troupe::trace
