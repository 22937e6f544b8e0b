// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cuda/pretend_driver.hpp>

#include <troupe/kernels/cuda/nccl.hpp>

#include <memory>

namespace troupe::test {

/// NCCL for pretend GPUs. A merge reads the values of all ranks when their
/// queues have come to it; each queue writes the result of its rank. Sums are
/// added from the last rank to the first one: not in the order of other groups.
/// @param connects false: it refuses to connect GPUs
std::shared_ptr<cuda::nccl>
make_pretend_nccl(std::shared_ptr<pretend_driver> api, bool connects = true);

} // namespace troupe::test
