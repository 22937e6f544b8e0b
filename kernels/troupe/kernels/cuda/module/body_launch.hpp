// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/driver.hpp>

#include <cuda_runtime_api.h>

namespace troupe::cuda {

/// Queues the kernel of this number, with a copy of its arguments, on a stream
/// of the calling thread's current GPU.
cudaError_t launch_body(kernel_number which, const launch_shape& shape,
                        const void* arguments, cudaStream_t on);

} // namespace troupe::cuda
