// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/library/library_versions.hpp>

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <array>
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

std::string_view reason_against_blas(bool parallel, std::string_view core,
                                     bool has_avx512, bool has_avx2) noexcept {
  constexpr std::array<std::string_view, 3> with_avx512{
    "SkylakeX", "Cooperlake", "SapphireRapids"};
  constexpr std::array<std::string_view, 2> with_avx2{"Haswell", "Zen"};
  if (!parallel)
    return "the serial OpenBLAS is loaded, which Troupe does without; "
           "libopenblas-pthread-dev makes small products faster";
  if ((!has_avx512 && std::ranges::find(with_avx512, core) != with_avx512.end())
      || (!has_avx2 && std::ranges::find(with_avx2, core) != with_avx2.end()))
    return "OPENBLAS_CORETYPE names another processor, so Troupe does without "
           "OpenBLAS; small products are faster if it is not set";
  return "";
}

std::string_view reason_against_blas() noexcept {
  static const auto reason =
    reason_against_blas(openblas_get_parallel() != 0, openblas_get_corename(),
                        __builtin_cpu_supports("avx512f") != 0,
                        __builtin_cpu_supports("avx2") != 0);
  return reason;
}

} // namespace troupe
