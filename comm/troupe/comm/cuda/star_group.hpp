// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/local/merger.hpp>
#include <troupe/kernels/device.hpp>

#include <memory>
#include <span>
#include <vector>

namespace troupe::comm {

/// Makes a group of CUDA devices of this process; result i is the end of rank
/// i.
///
/// The first rank, or the root, copies the values of the others to its memory,
/// adds them up in rank order, and the others copy the result. All of this is
/// queued on the streams that make the calls, so no thread waits, and a call is
/// always pending. Sums are of float32. Selected rows are those of all ranks,
/// in rank order; to broadcast them is error(invalid_argument).
///
/// Ranks make calls from work that a stream of their device executes. Throws
/// error(invalid_argument) if there is no device.
std::vector<std::unique_ptr<communicator>>
make_star_group(std::span<device* const> ranks);

/// What merges for the group.
std::unique_ptr<local::merger> make_star_merger(std::span<device* const> ranks);

} // namespace troupe::comm
