// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <troupe/base/error.hpp>
#include <troupe/comm/local/merge_rows.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <span>
#include <vector>

using namespace comm_test;
using namespace troupe::comm::local;
using row_list = std::vector<std::int64_t>;

TEST_SUITE("comm.merge_rows") {

namespace {

selected_rows make_rows(const row_list& rows, unsigned seed,
                        dtype type = dtype::float32, std::int64_t width = 3) {
  selected_rows value;
  value.rows = rows;
  value.height = 100;
  value.values = random_tensor({std::int64_t(rows.size()), width}, type, seed);
  return value;
}

selected_rows merged_of(std::span<const selected_rows* const> rows) {
  std::vector<std::optional<rows_view>> all;
  for (std::size_t r = 0; r < rows.size(); ++r)
    all.push_back(view_of(rows[r], r));
  check_rows(all);
  return merge_rows(all, host());
}

void check_error(errc code, const char* message, const selected_rows& a,
                 const selected_rows& b) {
  const selected_rows* all[] = {&a, &b};
  try {
    merged_of(all);
    FAIL("no error, expected: ", message);
  } catch (const error& e) {
    CHECK(e.code() == code);
    CHECK(e.message() == message);
  }
}

} // namespace

TEST_CASE("duplicates are kept, in the order of ranks") {
  auto a = make_rows({7, 2, 7}, 1), b = make_rows({7, 0}, 2);
  const selected_rows* all[] = {&b, nullptr, &a};
  auto merged = merged_of(all);
  CHECK(merged.rows == row_list{7, 0, 7, 2, 7});
  CHECK(merged.values.dims() == shape{5, 3});
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(get(merged.values, i) == get(b.values, i));
  for (std::size_t i = 0; i < 9; ++i)
    CHECK(get(merged.values, 6 + i) == get(a.values, i));
}

TEST_CASE("idle ranks contribute no rows") {
  selected_rows idle;
  idle.height = 100;
  auto a = make_rows({4}, 1), none = make_rows({}, 1);
  const selected_rows* some[] = {&idle, nullptr, &none, &a};
  CHECK(merged_of(some).rows == row_list{4});
  const selected_rows* nobody[] = {nullptr, &idle};
  auto merged = merged_of(nobody);
  CHECK(merged.rows.empty());
  CHECK(merged.height == 100);
  CHECK(!merged.values);
  CHECK(merged_of({}).rows.empty());
}

TEST_CASE("ranks that do not fit together are named") {
  auto good = make_rows({1, 2}, 1);
  auto bad = good;
  bad.height = 50;
  check_error(errc::shape_mismatch,
              "merge_rows: rank 1 has the height 50, the first rank 100", good,
              bad);
  bad = good;
  bad.rows = {1, 100};
  check_error(errc::out_of_range,
              "merge_rows: rank 1 has row 100 of a tensor of 100 rows", good,
              bad);
  bad.rows = {-1, 1};
  check_error(errc::out_of_range,
              "merge_rows: rank 0 has row -1 of a tensor of 100 rows", bad,
              good);
  bad.rows = {1};
  check_error(errc::shape_mismatch,
              "merge_rows: rank 1 has 1 rows but values [2, 3]", good, bad);
  bad = good;
  bad.values = {};
  check_error(errc::shape_mismatch,
              "merge_rows: rank 1 has 2 rows without values", good, bad);
  check_error(errc::shape_mismatch,
              "merge_rows: rank 1 has values [1, 4], the first rank [2, 3]",
              good, make_rows({1}, 1, dtype::float32, 4));
  check_error(errc::dtype_mismatch,
              "merge_rows: rank 1 has int32 values, the first rank float32",
              good, make_rows({1}, 1, dtype::int32));
}

} // TEST_SUITE("comm.merge_rows")
