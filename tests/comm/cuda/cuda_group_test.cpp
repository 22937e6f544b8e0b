// SPDX-License-Identifier: Apache-2.0
#include <comm/cuda/cuda_ranks.hpp>
#include <support/caught.hpp>

#include <troupe/comm/cuda/cuda_group.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace troupe {

using namespace comm;
using test::caught;
using test::says;

TEST_SUITE("comm.cuda_group") {

namespace {

/// Merges a number of each device. Returns how many merges were NCCL's.
std::uint64_t merges_by_nccl(const test::pretend_options& machine, int devices,
                             const device_options& options = {}) {
  const auto api = test::make_pretend_driver(machine);
  test::cuda_ranks all{test::make_cuda_devices(api, devices, options),
                       [](auto members) { return make_cuda_group(members); }};
  float sum = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    all.give(r, {static_cast<float>(r + 1)});
    sum += static_cast<float>(r + 1);
  }
  all.merge(collective_kind::all_reduce);
  for (std::size_t r = 0; r < all.size(); ++r)
    CHECK(all.got(r) == std::vector<float>{sum});
  return api->merges();
}

} // namespace

TEST_CASE("devices on different GPUs merge by NCCL") {
  for (int devices : {2, 3, 8})
    CHECK(merges_by_nccl({.gpus = devices}, devices) == 1);
}

TEST_CASE("devices merge without NCCL if it is not there or of no use") {
  CHECK(merges_by_nccl({.gpus = 2, .has_nccl = false}, 2) == 0);
  CHECK(merges_by_nccl({.gpus = 1}, 1) == 0);
  CHECK(merges_by_nccl({.gpus = 2}, 2, {.sums_in_order = true}) == 0);
}

TEST_CASE("devices of which two share a GPU merge without NCCL") {
  CHECK(merges_by_nccl({.gpus = 2}, 3) == 0);
  CHECK(merges_by_nccl({.gpus = 1}, 2) == 0);
}

TEST_CASE("if NCCL cannot connect GPUs, the error says so, and what helps") {
  const test::pretend_options machine{.gpus = 2, .nccl_connects = false};
  const auto e = caught([&] { merges_by_nccl(machine, 2); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "NCCL: unhandled system error; --deterministic"));
  CHECK(merges_by_nccl(machine, 2, {.sums_in_order = true}) == 0);
}

TEST_CASE("a group needs a device") {
  CHECK(caught([] { make_cuda_group({}); }).code() == errc::invalid_argument);
}

} // TEST_SUITE("comm.cuda_group")

} // namespace troupe
