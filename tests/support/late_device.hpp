// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/device.hpp>

#include <cstdint>
#include <memory>

namespace troupe::test {

/// A CPU device that behaves as badly as a GPU may: `launch` only queues, a
/// thread per stream runs the work later, after a delay drawn from the seed,
/// and completions are reported later still and out of order, by yet another
/// thread. Kernels really wait for tickets of other streams, so that a missing
/// edge or wait shows as a wrong number.
std::shared_ptr<device> make_late_device(int index, std::uint64_t seed,
                                         std::uint32_t max_delay_us);

} // namespace troupe::test
