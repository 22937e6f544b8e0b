// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/module/nccl_library.hpp>

#include <troupe/base/error.hpp>

namespace troupe::cuda {

std::unique_ptr<nccl> open_nccl() {
  throw error(errc::not_found,
              "no NCCL: nccl.h was missing where troupe_cuda.so was built");
}

} // namespace troupe::cuda
