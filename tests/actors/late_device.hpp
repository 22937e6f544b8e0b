// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/sim/sim_device.hpp>

#include <cstdint>
#include <memory>

namespace troupe {

/// A simulated device that stands for CPU device `index` of a graph.
inline std::shared_ptr<device>
make_late_device(int index, std::uint64_t seed = 0,
                 std::uint32_t max_delay_us = 0) {
  return make_sim_device({device_kind::cpu, index},
                         {.max_delay_us = max_delay_us, .seed = seed});
}

} // namespace troupe
