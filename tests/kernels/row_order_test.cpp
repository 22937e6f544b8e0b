// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/row_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace troupe::test {

TEST_SUITE("kernels.row_order") {

namespace {

using list = std::vector<std::int64_t>;

list ordered(const list& rows, std::int64_t height) {
  list order{7, 7, 7}; // of an earlier call
  order_rows(rows, height, order);
  return order;
}

} // namespace

TEST_CASE("positions rise by row and equal rows stay as they came") {
  CHECK(ordered({5, 2, 5, 0, 2}, 6) == list{3, 1, 4, 0, 2});
}

TEST_CASE("rows in order stay in order") {
  CHECK(ordered({}, 10) == list{});
  CHECK(ordered({4}, 10) == list{0});
  CHECK(ordered({0, 0, 0}, 1) == list{0, 1, 2});
  CHECK(ordered({1, 1, 2, 9}, 10) == list{0, 1, 2, 3});
}

TEST_CASE("rows of tables of any height are sorted as the library does it") {
  std::mt19937_64 draw{3};
  for (const std::int64_t height :
       {std::int64_t{2}, std::int64_t{2048}, std::int64_t{2049},
        std::int64_t{2'600'000}, (std::int64_t{1} << 22) + 1,
        std::int64_t{1} << 40}) {
    CAPTURE(height);
    list rows(1000);
    for (auto& row : rows)
      row =
        static_cast<std::int64_t>(draw() % static_cast<unsigned long>(height));
    rows[10] = height - 1;
    list expected(rows.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(expected.begin(), expected.end(), [&](auto a, auto b) {
      return rows[static_cast<std::size_t>(a)]
             < rows[static_cast<std::size_t>(b)];
    });
    CHECK(ordered(rows, height) == expected);
  }
}

} // TEST_SUITE("kernels.row_order")

} // namespace troupe::test
