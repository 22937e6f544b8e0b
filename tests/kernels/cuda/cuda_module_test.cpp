// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/cuda/cuda_module.hpp>

#include <doctest/doctest.h>

#include <string>

namespace troupe {

using test::caught;
using test::says;

TEST_SUITE("kernels.cuda.cuda_module") {

TEST_CASE("without the module, devices and NCCL are missing, and it is named") {
  if (cuda::has_cuda_module())
    return;
  for (const auto& e : {caught([] { cuda::loaded_driver(); }),
                        caught([] { cuda::loaded_nccl(); })}) {
    CHECK(e.code() == errc::not_found);
    CHECK(says(e, "troupe_cuda.so"));
  }
}

TEST_CASE(
  "the module names NCCL's version, or what is missing, without a GPU") {
  if (!cuda::has_cuda_module())
    return;
  try {
    CHECK(cuda::loaded_nccl()->version().starts_with("2."));
    CHECK(cuda::loaded_nccl() == cuda::loaded_nccl());
  } catch (const error& e) {
    CHECK(e.code() == errc::not_found);
    CHECK(says(e, "no NCCL: "));
  }
}

} // TEST_SUITE("kernels.cuda.cuda_module")

} // namespace troupe
