// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/library/library_versions.hpp>

#include <doctest/doctest.h>

using troupe::instructions;
using troupe::runs_blas_code;

TEST_SUITE("kernels.cpu.library_versions") {

TEST_CASE("a processor runs OpenBLAS's code for itself and for older ones") {
  CHECK(runs_blas_code("SkylakeX", instructions::avx512));
  CHECK(runs_blas_code("Haswell", instructions::avx512));
  CHECK(runs_blas_code("Zen", instructions::avx2));
  CHECK(runs_blas_code("Sandybridge", instructions::avx));
  CHECK(runs_blas_code("Nehalem", instructions::sse4_2));
}

TEST_CASE("a processor does not run OpenBLAS's code for newer ones") {
  CHECK_FALSE(runs_blas_code("SkylakeX", instructions::avx2));
  CHECK_FALSE(runs_blas_code("Haswell", instructions::avx));
  CHECK_FALSE(runs_blas_code("Sandybridge", instructions::sse4_2));
}

TEST_CASE("no processor is known to run OpenBLAS's code for others") {
  for (const auto* core :
       {"Opteron", "Bulldozer", "Piledriver", "Excavator", "Cooperlake", ""})
    CHECK_FALSE(runs_blas_code(core, instructions::avx512));
}

} // TEST_SUITE("kernels.cpu.library_versions")
