// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/device.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace troupe {

/// When the launches of a simulated device end.
struct sim_times {
  /// By op type: how long a launch takes at least, in microseconds. Others end
  /// when their kernel has.
  std::map<std::string, std::uint32_t, std::less<>> us_of_op = {};
  /// Above 0, the device behaves as badly as it can: work runs after a delay of
  /// at most so long, drawn from the seed, and completions are reported later
  /// still and out of order.
  std::uint32_t max_delay_us = 0;
  std::uint64_t seed = 0;
};

/// A device in host memory that behaves as a GPU may: `launch` only queues, and
/// a thread of the device runs the kernel, one of the CPU's, later. Kernels
/// really wait for tickets of other streams, so that a missing edge or wait
/// shows as a wrong number.
///
/// With times each stream has a thread of its own; without, one thread runs and
/// completes the work of all streams as soon as it comes to it.
/// @param id what the device is called; tests let it stand for a CPU device
std::unique_ptr<device> make_sim_device(device_id id, sim_times times = {});

} // namespace troupe
