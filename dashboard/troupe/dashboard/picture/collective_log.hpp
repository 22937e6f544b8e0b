// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/trace.hpp>

#include <cstdint>
#include <map>
#include <vector>

namespace troupe::dashboard {

/// The latest call of a collective.
struct collective_call {
  std::uint32_t step = 0;
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
/// Thread rule: one thread at a time.
class collective_log {
public:
  explicit collective_log(const trace::graph_info& graph);

  /// Takes events in their order.
  void add(const trace_event& e);
  /// The latest call of each collective, by handle.
  const std::map<handle_id, collective_call>& calls() const noexcept {
    return calls_;
  }

private:
  void arrive(const trace_event& e);
  void end(const trace_event& e);

  std::map<handle_id, collective_call> calls_;
};

} // namespace troupe::dashboard
