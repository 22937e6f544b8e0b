// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/driver.hpp>
#include <troupe/kernels/cuda/nccl.hpp>

#include <memory>
#include <string>

namespace troupe::cuda {

/// True if this build's module troupe_cuda is there. Does not load it.
bool has_cuda_module();

/// The driver of the module troupe_cuda, which is loaded at the first call. All
/// calls return the same one. Throws error(not_found) if there is no module, a
/// library that it needs is missing, the machine has no driver or an older one
/// than needed (both versions are named), or no GPU. Any thread.
std::shared_ptr<driver> loaded_driver();

/// NCCL, which the module troupe_cuda opens at the first call. Needs neither a
/// GPU nor a driver. Throws error(not_found) that says what is missing: the
/// module or the library. Any thread.
std::shared_ptr<nccl> loaded_nccl();

} // namespace troupe::cuda

extern "C" {
/// What the module has. Throws as `loaded_driver` does.
troupe::cuda::driver* troupe_make_cuda_driver();
/// Throws as `loaded_nccl` does.
troupe::cuda::nccl* troupe_open_nccl();
}
