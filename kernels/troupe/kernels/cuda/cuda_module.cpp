// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/cuda_module.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/module.hpp>

#include <mutex>
#include <string>

namespace troupe::cuda {

namespace {

constexpr auto module_name = "troupe_cuda";

std::shared_ptr<driver> load() {
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

} // namespace

bool has_cuda_module() {
  return has_module(module_name);
}

// Kept until the process ends: the module stays loaded, and a driver's context
// is costly to make. A failure is not kept.
std::shared_ptr<driver> loaded_driver() {
  static std::mutex loading;
  static std::shared_ptr<driver>& loaded = *new std::shared_ptr<driver>;
  std::lock_guard guard{loading};
  if (!loaded)
    loaded = load();
  return loaded;
}

} // namespace troupe::cuda
