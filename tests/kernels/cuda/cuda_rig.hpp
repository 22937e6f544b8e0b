// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cuda/pretend_driver.hpp>

#include <troupe/kernels/cuda/cuda_device.hpp>

#include <memory>
#include <vector>

namespace troupe::test {

/// True if the tests use a real GPU: the environment variable TROUPE_TEST_GPU
/// is set. All others use the pretend driver.
bool tests_use_gpu();

/// The driver that tests use: the one of the module troupe_cuda, or a pretend
/// one with this seed.
std::shared_ptr<cuda::driver> make_test_driver(std::uint64_t seed = 1);

/// Devices cuda:0, cuda:1, ... of a driver. If it has fewer GPUs, devices share
/// them.
std::vector<std::shared_ptr<device>>
make_cuda_devices(std::shared_ptr<cuda::driver> api, int count,
                  const device_options& options = {});

} // namespace troupe::test
