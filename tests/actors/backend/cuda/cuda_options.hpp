// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/cuda/cuda_rig.hpp>

#include <troupe/actors/executor.hpp>

#include <memory>
#include <utility>

namespace troupe::test {

/// Options of an executor on devices of a driver.
inline executor_options
on_cuda(std::shared_ptr<cuda::driver> api, int devices,
        graph::merge_strategy strategy = graph::merge_strategy::all_reduce,
        const device_options& options = {}) {
  executor_options o;
  o.devices.clear();
  for (int i = 0; i < devices; ++i)
    o.devices.push_back({device_kind::cuda, i});
  o.strategy = strategy;
  o.hooks.device_instances =
    make_cuda_devices(std::move(api), devices, options);
  return o;
}

} // namespace troupe::test
