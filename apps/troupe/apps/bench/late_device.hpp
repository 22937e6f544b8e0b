// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/device.hpp>

#include <cstdint>
#include <memory>

namespace troupe::apps {

/// A CPU device that behaves as a GPU may: `launch` only queues, and a thread
/// of the device runs the work later. Kernels really wait for tickets of other
/// streams, so that a missing edge or wait shows as a wrong number.
///
/// With `max_delay_us` it behaves as badly as it can: each stream has a thread,
/// work runs after a delay drawn from the seed, and completions are reported
/// later still and out of order, by yet another thread. Without, one thread
/// runs and completes the work of all streams as soon as it comes to it.
std::shared_ptr<device> make_late_device(int index, std::uint64_t seed = 0,
                                         std::uint32_t max_delay_us = 0);

} // namespace troupe::apps
