// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/cuda_rig.hpp>

#include <troupe/kernels/cuda/cuda_module.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace troupe::test {

bool tests_use_gpu() {
  return std::getenv("TROUPE_TEST_GPU") != nullptr;
}

std::shared_ptr<cuda::driver> make_test_driver(std::uint64_t seed) {
  if (tests_use_gpu())
    return cuda::loaded_driver();
  return make_pretend_driver({.seed = seed});
}

std::vector<std::shared_ptr<device>>
make_cuda_devices(std::shared_ptr<cuda::driver> api, int count,
                  const device_options& options) {
  std::vector<std::shared_ptr<device>> made;
  for (int i = 0; i < count; ++i)
    made.push_back(
      cuda::make_cuda_device(api, {device_kind::cuda, i}, options,
                             std::min(i, std::max(api->gpus(), 1) - 1)));
  return made;
}

} // namespace troupe::test
