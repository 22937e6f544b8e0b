// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::comm {

/// A number for the host that this process runs on: equal in all processes of a
/// host, and different, as far as 64 bits can be, on other hosts. A container
/// counts as a host of its own if it has a name or a network of its own.
///
/// Processes of a host reach each other without a network, so whoever asks
/// needs no word of a launcher, which may number ranks in any order.
std::uint64_t host_identity();

} // namespace troupe::comm
