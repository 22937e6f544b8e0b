// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/cuda/nccl_group.hpp>
#include <troupe/kernels/device.hpp>

#include <memory>
#include <span>
#include <vector>

namespace troupe::comm {

/// Makes a group of CUDA devices of this process; result i is the end of rank
/// i. Values are merged by NCCL (`make_nccl_group`), or by `make_star_group`
/// if
/// - there is one rank, or two ranks share a GPU, which NCCL refuses;
/// - the machine has no NCCL;
/// - a device was made with `device_options::sums_in_order`.
///
/// Throws error(invalid_argument) if there is no device, and
/// error(peer_failure) with what NCCL says if it is there but cannot connect
/// the GPUs.
std::vector<std::unique_ptr<communicator>>
make_cuda_group(std::span<device* const> ranks,
                const nccl_group_options& options = {});

} // namespace troupe::comm
