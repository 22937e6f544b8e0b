// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/kernels/cuda/nccl.hpp>
#include <troupe/kernels/device.hpp>

#include <chrono>
#include <memory>
#include <span>
#include <vector>

namespace troupe::comm {

/// When a merge that does not end is given up.
struct nccl_group_options {
  /// Of one call, from when the first rank's GPU was seen to come to it.
  std::chrono::milliseconds limit{60'000};
  /// How often the watching thread looks.
  std::chrono::milliseconds every{100};
};

/// Makes a group of CUDA devices of this process, as `make_star_group` does,
/// whose values are merged by NCCL: rank i has the i-th device, and `ranks`
/// are those of the devices' GPUs. The values of a call are merged as one.
/// Memory for results is taken before NCCL queues anything.
///
/// Sums are made in any order, so they differ in rounding from those of other
/// groups. Calls with an idle rank, with selected rows or with values that do
/// not fit together are merged as by `make_star_group`.
///
/// A thread watches. If a call takes longer than the limit (by the driver's
/// clock), or NCCL tells of a failure, all work of NCCL is aborted and each
/// call that has not ended fails with error(peer_failure). It names kind and
/// values of the oldest call, the ranks whose GPUs had come to it, and those
/// that are missing. Later calls are merged as by `make_star_group`.
std::vector<std::unique_ptr<communicator>>
make_nccl_group(std::span<device* const> devices,
                std::unique_ptr<cuda::nccl_ranks> ranks,
                const nccl_group_options& options = {});

} // namespace troupe::comm
