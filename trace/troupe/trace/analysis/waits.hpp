// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/parcels.hpp>
#include <troupe/trace/analysis/timeline.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::trace {

/// What an op waited for before it ran.
enum class wait_reason : std::uint8_t {
  /// The stream had nothing to do until the last message of the op came.
  message,
  begin,  ///< the stream had nothing to do until the step began
  worker, ///< the op was ready, its stream was free, but no worker ran it
  rank,   ///< a rank of a collective, or a `recv`, waited for its partner
};
/// The name of the value, such as "message".
std::string_view to_string(wait_reason reason) noexcept;

/// All waits of an op for another one, in `timeline::op_steps`.
struct op_wait {
  handle_id op = no_handle;
  handle_id waited_for = no_handle; ///< none: the step's begin, or a worker
  wait_reason reason = wait_reason::message;
  std::size_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t longest_ns = 0;
  std::uint32_t longest_in = 0; ///< step of the longest one
  ///@{
  /// Of waits for a rank: what it sent, and how long that took on its way, in
  /// those waits of which both are known.
  std::size_t parcels = 0;
  std::uint64_t bytes = 0;
  std::uint64_t travel_ns = 0;
  ///@}
};

/// The times in which compute streams of devices ran nothing although their
/// step was under way, by the op that ended the time; and the times in which
/// ranks waited for others. The most time first.
std::vector<op_wait> find_waits(const timeline& all, const op_graph& graph,
                                const parcel_list& parcels);

} // namespace troupe::trace
