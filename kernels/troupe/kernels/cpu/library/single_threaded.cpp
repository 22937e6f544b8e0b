// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/library/single_threaded.hpp>

#include <cblas.h>
#include <omp.h>

namespace troupe::cpu {

namespace {

// OpenMP keeps the count per thread, OpenBLAS per process.
bool limit_threads() noexcept {
  omp_set_num_threads(1);
  [[maybe_unused]] static const bool once = (openblas_set_num_threads(1), true);
  return true;
}

} // namespace

void ensure_single_threaded() noexcept {
  [[maybe_unused]] thread_local const bool limited = limit_threads();
}

} // namespace troupe::cpu
