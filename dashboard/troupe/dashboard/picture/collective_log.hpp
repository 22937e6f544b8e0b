// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <map>
#include <vector>

namespace troupe::dashboard {

/// A variable that a collective merges with those of other devices.
struct merged_value {
  handle_id variable = no_handle;
  std::uint32_t device = 0;
};

/// The latest call of a collective, or of an update that merges gradients.
struct collective_call {
  std::uint32_t step = 0;
  std::vector<merged_value> values;
  std::vector<std::uint32_t> expected; ///< devices, ascending
  std::vector<std::uint32_t> arrived;  ///< devices, in their order of arrival
  std::uint64_t first_ns = 0;          ///< when the first one arrived
  bool is_over = false;
  std::uint64_t last_ns = 0; ///< from the first arrival to the end; of the
                             ///< latest call that is over
  std::uint64_t calls = 0;   ///< that are over
  double total_ns = 0;       ///< of these
};

/// Who has arrived at which collective. Needs events of level `ops`.
///
/// An op that reads gradients of several devices merges them without a
/// collective, and counts as one: so do updates of the strategy `reduce` in one
/// process. A device has arrived when the messages of all its gradients have,
/// or, at level `ops`, when the op begins.
///
/// Thread rule: one thread at a time.
class collective_log {
public:
  explicit collective_log(const trace::graph_info& graph);

  /// Takes events in their order.
  void add(const trace_event& e);
  /// Nothing is known of what comes now, such as the ends of calls that are
  /// under way.
  void forget_open();
  /// The latest call of each collective, by handle.
  const std::map<handle_id, collective_call>& calls() const noexcept {
    return calls_;
  }

private:
  /// Values that have come to an op without a collective.
  struct come_values {
    std::uint32_t step = 0;
    std::vector<handle_id> values;
  };

  void expect(handle_id op, const trace::graph_info& graph);
  bool merges_itself(handle_id op) const noexcept;
  void take_message(const trace_event& e);
  void begin_run(const trace_event& e);
  void arrive(handle_id op, const trace_event& e, std::uint32_t device);
  void end(const trace_event& e);

  std::map<handle_id, collective_call> calls_;
  std::vector<bool> merge_themselves_; // by handle: without a collective
  std::map<handle_id, come_values> come_;
};

} // namespace troupe::dashboard
