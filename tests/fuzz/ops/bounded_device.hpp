// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/device.hpp>

#include <cstddef>
#include <memory>

namespace troupe::fuzz {

/// A CPU device with `bytes` of memory, each block of it an allocation of its
/// own, so that AddressSanitizer sees what is accessed beside a block.
std::shared_ptr<device> make_bounded_device(std::size_t bytes);

} // namespace troupe::fuzz
