// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/device.hpp>

#include <span>

namespace troupe {

/// Whether ops of each of these devices of one process may use the memory of
/// all others as it is, without a copy: CPU devices. Kernels of several may
/// read a variable at the same time, just as those of one do.
bool share_memory(std::span<const device_id> devices) noexcept;

} // namespace troupe
