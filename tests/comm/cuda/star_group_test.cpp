// SPDX-License-Identifier: Apache-2.0
#include <comm/cuda/cuda_ranks.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

using namespace comm;
using test::caught;
using test::says;

TEST_SUITE("comm.star_group") {

namespace {

class ranks : public test::cuda_ranks {
public:
  ranks(int count, std::uint64_t seed)
    : cuda_ranks(test::make_cuda_devices(test::make_test_driver(seed), count)) {
  }
};

const std::vector<std::vector<float>> numbers{
  {1e8f, 1, 2}, {1, -1, 0.5f}, {-1e8f, 3, 0.25f}, {7, 8, 9}};

/// ((x0 + x1) + x2) + ...
std::vector<float> sum_in_order(std::size_t count) {
  auto sum = numbers[0];
  for (std::size_t r = 1; r < count; ++r)
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += numbers[r][i];
  return sum;
}

} // namespace

TEST_CASE("all CUDA devices get the sum in rank order") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    for (int count : {1, 2, 4}) {
      ranks all{count, seed};
      for (std::size_t r = 0; r < all.size(); ++r)
        all.give(r, numbers[r]);
      all.merge(collective_kind::all_reduce);
      for (std::size_t r = 0; r < all.size(); ++r)
        CHECK(all.got(r) == sum_in_order(all.size()));
    }
}

TEST_CASE("any root gets the sum in rank order") {
  for (std::size_t root = 0; root < 4; ++root) {
    ranks all{4, root + 1};
    for (std::size_t r = 0; r < 4; ++r)
      all.give(r, numbers[r]);
    all.merge(collective_kind::reduce, root);
    CHECK(all.got(root) == sum_in_order(4));
  }
}

TEST_CASE("all CUDA devices get the root's value") {
  ranks all{3, 1};
  for (std::size_t r = 0; r < 3; ++r)
    all.give(r, r == 2 ? numbers[2] : std::vector<float>{});
  all.merge(collective_kind::broadcast, 2);
  for (std::size_t r = 0; r < 3; ++r)
    CHECK(all.got(r) == numbers[2]);
}

TEST_CASE("an idle CUDA device adds nothing and gets the sum") {
  for (std::size_t idle = 0; idle < 2; ++idle) {
    ranks all{2, 3};
    all.give(idle, {});
    all.give(1 - idle, numbers[1]);
    all.merge(collective_kind::all_reduce);
    CHECK(all.got(0) == numbers[1]);
    CHECK(all.got(1) == numbers[1]);
  }
}

TEST_CASE("all CUDA devices get the rows of all, in rank order") {
  const std::vector<std::pair<std::int64_t, float>> wanted{
    {4, 1.0f}, {0, 2.0f}, {4, 3.0f}, {-1, 0.0f}};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ranks all{3, seed};
    all.give_rows(0, 5, {4, 0}, {1, 2});
    all.give(1, {});
    all.give_rows(2, 5, {4, -1}, {3, 0});
    all.merge(collective_kind::all_reduce);
    for (std::size_t r = 0; r < 3; ++r) {
      CHECK(all.got_rows(r) == wanted);
      CHECK(all.value(r).as_rows().height == 5);
    }
  }
}

TEST_CASE("rows that do not fit together fail on all CUDA devices") {
  ranks all{2, 1};
  all.give_rows(0, 5, {4}, {1});
  all.give_rows(1, 6, {4}, {1});
  CHECK(caught([&] { all.merge(collective_kind::all_reduce); }).code()
        == errc::shape_mismatch);
  for (std::size_t tensor_of : {0, 1}) {
    all.give(tensor_of, {1});
    all.give_rows(1 - tensor_of, 5, {4}, {1});
    CHECK(says(caught([&] { all.merge(collective_kind::all_reduce); }),
               "gives a tensor where others give rows"));
  }
  for (std::size_t r = 0; r < 2; ++r)
    all.give_rows(r, 5, {4}, {1});
  CHECK(says(caught([&] { all.merge(collective_kind::broadcast); }),
             "selected rows are not sent to others"));
}

TEST_CASE("values that do not fit together fail on all CUDA devices") {
  ranks all{2, 1};
  all.give(0, numbers[0]);
  all.give(1, {1, 2});
  const auto e = caught([&] { all.merge(collective_kind::all_reduce); });
  CHECK(e.code() == errc::shape_mismatch);
  CHECK(e.where().variable == "x");
  for (std::size_t r = 0; r < 2; ++r)
    all.give(r, {});
  CHECK(says(caught([&] { all.merge(collective_kind::all_reduce); }),
             "no rank has a value"));
}

} // TEST_SUITE("comm.star_group")

} // namespace troupe
