// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/library/library_versions.hpp>

#include <doctest/doctest.h>

using troupe::reason_against_blas;

TEST_SUITE("kernels.cpu.library_versions") {

TEST_CASE("OpenBLAS is used if its code runs on the processor") {
  CHECK(reason_against_blas(true, "SkylakeX", true, true).empty());
  CHECK(reason_against_blas(true, "Haswell", false, true).empty());
  CHECK(reason_against_blas(true, "Zen", false, true).empty());
  CHECK(reason_against_blas(true, "Nehalem", false, false).empty());
}

TEST_CASE("OpenBLAS is not used if its code needs another processor") {
  const auto* names_another = "OPENBLAS_CORETYPE names another processor";
  for (const auto* core : {"SkylakeX", "Cooperlake", "SapphireRapids"})
    CHECK(
      reason_against_blas(true, core, false, true).starts_with(names_another));
  for (const auto* core : {"Haswell", "Zen"})
    CHECK(
      reason_against_blas(true, core, false, false).starts_with(names_another));
}

TEST_CASE("the serial OpenBLAS is not used") {
  CHECK(reason_against_blas(false, "Haswell", false, true)
          .starts_with("the serial OpenBLAS is loaded"));
}

} // TEST_SUITE("kernels.cpu.library_versions")
