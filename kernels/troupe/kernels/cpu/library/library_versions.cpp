// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/library/library_versions.hpp>

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>

#include <sstream>

namespace troupe {

std::vector<std::pair<std::string, std::string>> cpu_library_versions() {
  const dnnl_version_t& dnnl = *dnnl_version();
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  std::istringstream blas(openblas_get_config());
  std::string name, version;
  blas >> name >> version;
  return {{"oneDNN", std::to_string(dnnl.major) + "."
                       + std::to_string(dnnl.minor) + "."
                       + std::to_string(dnnl.patch)},
          {"OpenBLAS", version + " (" + openblas_get_corename() + ")"}};
}

bool blas_takes_concurrent_calls() noexcept {
  static const bool yes = openblas_get_parallel() != 0;
  return yes;
}

} // namespace troupe
