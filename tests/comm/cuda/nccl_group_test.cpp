// SPDX-License-Identifier: Apache-2.0
#include <comm/cuda/cuda_ranks.hpp>
#include <support/caught.hpp>

#include <troupe/comm/cuda/nccl_group.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace troupe {

using namespace comm;
using test::caught;
using test::mishap;
using test::says;

TEST_SUITE("comm.nccl_group") {

namespace {

std::vector<int> numbered(int count) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

struct nccl_machine {
  nccl_machine(int ranks, std::uint64_t seed, mishap goes_wrong = mishap::none,
               std::uint64_t at_merge = 0)
    : gpus(numbered(ranks)),
      api(test::make_pretend_driver({.gpus = ranks, .seed = seed})),
      all(test::make_cuda_devices(api, ranks), [&](auto devices) {
        return make_nccl_group(devices, api->find_nccl()->make_ranks(gpus),
                               {.limit = std::chrono::milliseconds{1000},
                                .every = std::chrono::milliseconds{1}});
      }) {
    api->set(goes_wrong, at_merge);
  }

  /// Gives each rank numbers that depend on its own, and returns their sums.
  std::vector<double> give() {
    std::vector<double> sums(5, 0.0);
    for (std::size_t r = 0; r < gpus.size(); ++r) {
      std::vector<float> mine;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        mine.push_back(1.0f / static_cast<float>(1 + r + 3 * i));
        sums[i] += mine.back();
      }
      all.give(r, mine);
    }
    return sums;
  }

  std::vector<int> gpus;
  std::shared_ptr<test::pretend_driver> api;
  test::cuda_ranks all;
};

bool close(const std::vector<float>& found, const std::vector<double>& wanted) {
  if (found.size() != wanted.size())
    return false;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!(std::abs(found[i] - wanted[i]) <= 1e-6 * std::abs(wanted[i])))
      return false;
  return true;
}

} // namespace

TEST_CASE("2 to 8 ranks get the sum by NCCL, whatever runs first") {
  for (int ranks = 2; ranks <= 8; ++ranks)
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(ranks);
      CAPTURE(seed);
      nccl_machine m{ranks, seed};
      for (int call = 0; call < 3; ++call) {
        const auto sums = m.give();
        m.all.merge(collective_kind::all_reduce);
        for (std::size_t r = 0; r < m.all.size(); ++r)
          CHECK(close(m.all.got(r), sums));
      }
    }
}

// On a machine with GPUs, NVIDIA's library merges; one GPU is a rank, too.
TEST_CASE("all GPUs that there are merge by NCCL") {
  const auto api = test::make_test_driver();
  const auto library = api->find_nccl();
  if (!library)
    return;
  const auto gpus = numbered(api->gpus());
  test::cuda_ranks all{
    test::make_cuda_devices(api, api->gpus()), [&](auto devices) {
      return make_nccl_group(devices, library->make_ranks(gpus));
    }};
  const auto count = static_cast<float>(gpus.size());
  for (auto kind : {collective_kind::all_reduce, collective_kind::reduce,
                    collective_kind::broadcast}) {
    for (std::size_t r = 0; r < gpus.size(); ++r)
      all.give(r, {1, 2, 3});
    all.merge(kind);
    const auto times = kind == collective_kind::broadcast ? 1 : count;
    CHECK(all.got(0) == std::vector<float>{times, 2 * times, 3 * times});
  }
}

TEST_CASE("a root gets the sum by NCCL, and others keep what they gave") {
  for (std::size_t root = 0; root < 3; ++root) {
    nccl_machine m{3, root + 1};
    const auto sums = m.give();
    m.all.merge(collective_kind::reduce, root);
    CHECK(close(m.all.got(root), sums));
    CHECK(m.all.got((root + 1) % 3).front()
          == 1.0f / static_cast<float>(1 + (root + 1) % 3));
  }
}

TEST_CASE("all ranks get the root's value by NCCL") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    nccl_machine m{3, seed};
    m.give();
    m.all.give(2, {4, 5, 6});
    m.all.merge(collective_kind::broadcast, 2);
    for (std::size_t r = 0; r < 3; ++r)
      CHECK(m.all.got(r) == std::vector<float>{4, 5, 6});
  }
}

TEST_CASE("calls that NCCL cannot merge are merged without it") {
  // The first call of NCCL would hang.
  nccl_machine m{3, 2, mishap::merge_hangs};
  const auto sums = m.give();
  m.all.give(1, {});
  m.all.merge(collective_kind::all_reduce);
  CHECK(m.all.got(1) == m.all.got(0));
  CHECK(m.all.got(0).front() == 1.0f + 1.0f / 3);
  m.give();
  m.all.give(1, {1, 2});
  CHECK(caught([&] { m.all.merge(collective_kind::all_reduce); }).code()
        == errc::shape_mismatch);
}

TEST_CASE("a merge that hangs is given up, and the group goes on") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    nccl_machine m{3, seed, mishap::merge_hangs, 1};
    m.give();
    m.all.merge(collective_kind::all_reduce);
    m.give();
    const auto e = caught([&] { m.all.merge(collective_kind::all_reduce); });
    CHECK(e.code() == errc::peer_failure);
    CHECK(says(e, "NCCL: all_reduce of x: no end within 1000 ms"));
    CHECK(says(e, "ranks that came: 0, 1, 2; missing: none"));
    const auto sums = m.give();
    m.all.merge(collective_kind::all_reduce);
    for (std::size_t r = 0; r < 3; ++r)
      CHECK(close(m.all.got(r), sums));
    CHECK(m.api->merges() == 2); // not the last one
  }
}

TEST_CASE("what is told of a merge that hangs names the ranks that are late") {
  bool some_are_late = false;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    nccl_machine m{3, seed, mishap::merge_never_meets};
    m.give();
    const auto e = caught([&] { m.all.merge(collective_kind::all_reduce); });
    CHECK(says(e, "NCCL: all_reduce of x: no end within 1000 ms"));
    CHECK(e.message().find("ranks that came: none") == std::string::npos);
    some_are_late |= e.message().find("missing: none") == std::string::npos;
  }
  CHECK(some_are_late);
}

TEST_CASE("what NCCL says of a failure is told at once") {
  nccl_machine m{2, 4, mishap::merge_fails};
  m.give();
  const auto e = caught([&] { m.all.merge(collective_kind::all_reduce); });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "NCCL: all_reduce of x: remote error"));
}

TEST_CASE("only a failure of NCCL itself ends its use") {
  int failed = 0, of_nccl = 0;
  for (std::uint64_t k = 0; k < 20; ++k) {
    CAPTURE(k);
    nccl_machine m{2, 1};
    m.give();
    m.api->set(mishap::call_fails, k);
    std::string why;
    try {
      m.all.merge(collective_kind::all_reduce);
    } catch (const error& e) {
      why = e.message();
    }
    m.api->set(mishap::none, 0);
    m.give();
    const auto before = m.api->merges();
    m.all.merge(collective_kind::all_reduce);
    const bool refused = why.starts_with("meet");
    CHECK(m.api->merges() == before + (refused ? 0 : 1));
    failed += why.empty() ? 0 : 1;
    of_nccl += refused ? 1 : 0;
  }
  CHECK(failed > 1);
  CHECK(of_nccl == 1);
}

TEST_CASE("NCCL refuses two ranks on a GPU") {
  const auto library = test::make_pretend_driver()->find_nccl();
  const std::vector<int> twice{0, 0};
  CHECK(says(caught([&] { library->make_ranks(twice); }), "duplicate GPU"));
}

} // TEST_SUITE("comm.nccl_group")

} // namespace troupe
