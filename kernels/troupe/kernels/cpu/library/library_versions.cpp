// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/library/library_versions.hpp>

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
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

namespace {

struct blas_core {
  std::string_view name;
  instructions needed;
};

// Code for other processors of AMD has instructions that newer ones lack
// (3DNow!, FMA4). Code for Cooperlake has some that not all with AVX-512 have.
constexpr std::array<blas_core, 9> known_cores{{
  {"Prescott", instructions::sse4_2},
  {"Core2", instructions::sse4_2},
  {"Penryn", instructions::sse4_2},
  {"Dunnington", instructions::sse4_2},
  {"Nehalem", instructions::sse4_2},
  {"Sandybridge", instructions::avx},
  {"Haswell", instructions::avx2},
  {"Zen", instructions::avx2},
  {"SkylakeX", instructions::avx512},
}};

instructions available_instructions() noexcept {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    return instructions::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return instructions::avx2;
  return __builtin_cpu_supports("avx") ? instructions::avx
                                       : instructions::sse4_2;
}

} // namespace

bool runs_blas_code(std::string_view core, instructions available) noexcept {
  return std::ranges::any_of(known_cores, [&](const blas_core& known) {
    return known.name == core && known.needed <= available;
  });
}

std::string_view reason_against_blas() noexcept {
  static const auto reason = []() -> std::string_view {
    if (openblas_get_parallel() == 0)
      return "the serial OpenBLAS is loaded, which Troupe does without; "
             "libopenblas-pthread-dev makes small products faster";
    if (std::getenv("OPENBLAS_CORETYPE")
        && !runs_blas_code(openblas_get_corename(), available_instructions()))
      return "OPENBLAS_CORETYPE may name another processor, so Troupe does "
             "without OpenBLAS; small products are faster if it is not set";
    return "";
  }();
  return reason;
}

} // namespace troupe
