// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/transport.hpp>
#include <troupe/actors/tasks/collective_ranks.hpp>
#include <troupe/base/recorder.hpp>
#include <troupe/comm/parcel.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe::actors {

/// Carries the items of a graph's channels between processes, as parcels of the
/// group in which their devices are ranks: through shared memory, or over the
/// group's engine. In shared memory, an item without a value takes 64 bytes.
///
/// If there is no memory to send a value, that is sent as its failure.
///
/// Each item that is sent, and each that arrives, is an event for `trace`
/// (`event_kind::parcel_sent`), but for acknowledgements.
///
/// A parcel is accepted only if it comes from the rank at the other end of its
/// channel, and if the channel's end here expects it.
class group_wire final : public wire, private comm::parcel_receiver {
public:
  /// @param ends called until the wire is destroyed
  /// @param trace outlives the wire
  /// @param lost called with the device of a process that has broken these
  ///   rules, and with what it did
  group_wire(
    const graph::ssa_graph& g, transport& ends, const collective_ranks& ranks,
    const std::vector<std::size_t>& own_devices, recorder& trace,
    std::function<void(std::size_t device, const std::string& why)> lost);
  /// Afterwards neither `ends` nor `lost` is called.
  ~group_wire() override;
  /// Begins to receive. Called once, when `ends` is connected to the wire.
  void open();

  arena& memory() override;
  void send(std::uint32_t channel, step_id step, outgoing_item item) override;
  void tell_taken(std::uint32_t channel, step_id step) override;

private:
  enum class item_kind : std::uint32_t { value, failure, taken };
  /// The two ops, and their devices, which are ranks.
  struct channel_route {
    graph::transfer ops;
    std::uint32_t sender, receiver;
  };

  void post(std::size_t from, std::size_t to, item_kind kind,
            std::uint32_t channel, step_id step, encoded_value content);
  encoded_value encoded(const error& failure);
  void record(event_kind kind, const channel_route& on, step_id step,
              std::size_t bytes) noexcept;
  void arrived(std::size_t from, const comm::parcel_label& label,
               std::span<const std::byte> content) noexcept override;
  void malformed(std::size_t from, const error& why) noexcept override;
  bool accept(std::size_t from, const comm::parcel_label& label,
              std::string_view content);

  transport& ends_;
  const collective_ranks& ranks_;
  std::size_t own_device_; // any
  recorder& trace_;
  std::function<void(std::size_t, const std::string&)> lost_;
  std::vector<channel_route> channels_;
  std::vector<bool> is_own_; // by device
  arena host_memory_{make_host_memory_source()};
};

} // namespace troupe::actors
