// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/cuda/driver.hpp>
#include <troupe/kernels/device.hpp>

#include <memory>

namespace troupe::cuda {

/// Makes a device whose work a GPU of `api` does.
/// @param gpu the driver's number of the GPU, by default `id.index`. Several
///   devices may share a GPU.
/// Throws error(not_found) if there is no such GPU, and what the driver throws.
std::unique_ptr<device> make_cuda_device(std::shared_ptr<driver> api,
                                         device_id id,
                                         const device_options& options = {});
std::unique_ptr<device> make_cuda_device(std::shared_ptr<driver> api,
                                         device_id id,
                                         const device_options& options,
                                         int gpu);

/// What `make_cuda_device` has made a device of.
device_state& state_of(const device& d);

} // namespace troupe::cuda
