// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/cuda_module.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/module.hpp>

#include <mutex>
#include <string>

namespace troupe::cuda {

namespace {

constexpr auto module_name = "troupe_cuda";

std::shared_ptr<driver> load_driver() {
  try {
    const auto make = reinterpret_cast<decltype(&troupe_make_cuda_driver)>(
      function_of_module(module_name, "troupe_make_cuda_driver"));
    return std::shared_ptr<driver>(make());
  } catch (const error& e) {
    throw error(errc::not_found,
                "no CUDA devices: " + e.message()
                  + (has_cuda_module() ? "" : "; the preset gpu builds it"));
  }
}

std::shared_ptr<nccl> load_nccl() {
  const auto open = reinterpret_cast<decltype(&troupe_open_nccl)>(
    function_of_module(module_name, "troupe_open_nccl"));
  return std::shared_ptr<nccl>(open());
}

/// Kept until the process ends: the module stays loaded, and a driver's context
/// is costly to make. A failure is not kept.
template <class T>
std::shared_ptr<T> kept(std::shared_ptr<T> (*load)()) {
  static std::mutex loading;
  static std::shared_ptr<T>& loaded = *new std::shared_ptr<T>;
  std::lock_guard guard{loading};
  if (!loaded)
    loaded = load();
  return loaded;
}

} // namespace

bool has_cuda_module() {
  return has_module(module_name);
}

std::shared_ptr<driver> loaded_driver() {
  return kept(&load_driver);
}

std::shared_ptr<nccl> loaded_nccl() {
  return kept(&load_nccl);
}

} // namespace troupe::cuda
