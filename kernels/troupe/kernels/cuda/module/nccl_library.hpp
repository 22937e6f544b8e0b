// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/nccl.hpp>

#include <memory>

namespace troupe::cuda {

/// Opens NVIDIA's NCCL, version 2, which the loader finds. Throws
/// error(not_found) with what the loader says, or if the module was built
/// without NCCL's header.
std::unique_ptr<nccl> open_nccl();

} // namespace troupe::cuda
