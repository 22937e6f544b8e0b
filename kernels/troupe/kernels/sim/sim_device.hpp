// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/device.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace troupe {

/// When the launches of a simulated device complete.
struct sim_times {
  /// Minimum duration of a launch in microseconds, by op type. Launches of
  /// other ops complete when their kernel returns. A copy queued by work
  /// completes with its launch. A copy queued between launches takes the time
  /// that is listed under the name of its stream, such as "feed".
  std::map<std::string, std::uint32_t, std::less<>> us_of_op = {};
  /// If above 0, the device behaves as badly as allowed. Work starts after a
  /// random delay of up to this length, drawn from `seed`. Completions are
  /// reported later still, and out of order.
  std::uint32_t max_delay_us = 0;
  std::uint64_t seed = 0;
};

/// Makes a device in host memory that behaves like a GPU: `launch` only queues
/// the work, and a thread of the device runs the CPU kernel later. Work really
/// waits for tickets of other streams, so a missing edge or wait shows up as a
/// wrong result.
///
/// With `times`, each stream has its own thread. Without, one thread runs the
/// work of all streams as soon as it can.
/// @param id the device's id; tests may pass the id of a CPU device
std::unique_ptr<device> make_sim_device(device_id id, sim_times times = {});

} // namespace troupe
