// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace troupe::trace {

/// Why a value went from one process to another.
enum class parcel_kind : std::uint8_t {
  value, ///< what a `send` has sent to its `recv`
  /// what a rank of a collective waited for: the values of the rank that began
  /// last
  collective,
};

/// Where one end of a parcel is in the traces.
struct parcel_end {
  std::size_t trace = 0;  ///< its index
  std::size_t event = 0;  ///< index in the trace
  std::uint64_t time = 0; ///< in ns
};

/// What went from an op of one process to an op of another.
struct parcel {
  parcel_kind kind = parcel_kind::value;
  handle_id sender = no_handle;
  handle_id receiver = no_handle;
  std::uint32_t step = 0;
  std::uint64_t bytes =
    0; ///< of a collective: values of the sender; 0: unknown
  /// Of a collective: the begin of the sender, and when the results of the
  /// receiver were there. Missing if the traces do not have it.
  std::optional<parcel_end> sent, arrived;

  /// Whether the traces have both ends.
  bool is_whole() const noexcept { return sent && arrived; }
  /// From `sent` to `arrived`, which the traces have.
  std::uint64_t travel_ns() const noexcept {
    return arrived->time - std::min(sent->time, arrived->time);
  }
};

/// The parcels of a run, by the events of all its processes. Those of
/// collectives are whole.
class parcel_list {
public:
  /// @param graph of the traces. Ids in events that it lacks are left out
  parcel_list(std::span<const process_trace> parts, const op_graph& graph);

  /// Values first, each kind in the order of the traces and their events.
  std::span<const parcel> all() const noexcept { return all_; }
  /// What an op waited for from another process in a step; null if nothing.
  const parcel* find(handle_id receiver, std::uint32_t step) const;

private:
  void read_values(std::span<const process_trace> parts);
  void read_collectives(std::span<const process_trace> parts,
                        const op_graph& graph);
  parcel& at(parcel_kind kind, handle_id receiver, std::uint32_t step);

  std::vector<parcel> all_;
  std::unordered_map<std::uint64_t, std::size_t> by_receiver_; // and step
};

} // namespace troupe::trace
