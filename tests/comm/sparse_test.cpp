// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <troupe/base/error.hpp>
#include <troupe/comm/sparse.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <map>

using namespace comm_test;
using namespace troupe::comm;
using row_list = std::vector<std::int64_t>;

TEST_SUITE("comm.sparse") {

namespace {

selected_rows make_rows(const row_list& rows, unsigned seed,
                        dtype type = dtype::float32, std::int64_t width = 3) {
  selected_rows value;
  value.rows = rows;
  value.height = 100;
  value.values = random_tensor({std::int64_t(rows.size()), width}, type, seed);
  return value;
}

void check_error(errc code, const char* message, const selected_rows& a,
                 const selected_rows& b) {
  const selected_rows* all[] = {&a, &b};
  try {
    merge_rows(all, host());
    FAIL("no error, expected: ", message);
  } catch (const error& e) {
    CHECK(e.code() == code);
    CHECK(e.message() == message);
  }
}

} // namespace

TEST_CASE("duplicate rows are added once, rows ascending") {
  for (auto type :
       {dtype::float32, dtype::float16, dtype::bfloat16, dtype::int32})
    for (auto width : {1, 3, 70}) {
      auto a = make_rows({7, 2, 7, 99}, 1, type, width);
      auto b = make_rows({0, 7, 2}, 2, type, width);
      const selected_rows* all[] = {&a, &b};
      auto merged = merge_rows(all, host());
      CHECK(merged.rows == row_list{0, 2, 7, 99});
      CHECK(merged.height == 100);
      CHECK(merged.values.dims() == shape{4, width});
      CHECK(merged.values.type() == type);
      auto w = std::size_t(width);
      for (std::size_t k = 0; k < w; ++k) {
        auto eps = type == dtype::bfloat16 ? 0.05 : 0.01;
        CHECK(get(merged.values, k) == get(b.values, k));
        CHECK(std::abs(get(merged.values, w + k)
                       - (get(a.values, w + k) + get(b.values, 2 * w + k)))
              <= eps);
        CHECK(std::abs(get(merged.values, 2 * w + k)
                       - (get(a.values, k) + get(a.values, 2 * w + k)
                          + get(b.values, w + k)))
              <= eps);
        CHECK(get(merged.values, 3 * w + k) == get(a.values, 3 * w + k));
      }
    }
}

TEST_CASE("rows of tall tensors ascend, whatever digits they differ in") {
  auto a = make_rows({4'999'999, 2048, 4'194'305, 0}, 1);
  auto b = make_rows({4'194'304, 2047, 1, 2048}, 2);
  a.height = b.height = 5'000'000;
  const selected_rows* all[] = {&a, &b};
  const auto merged = merge_rows(all, host());
  CHECK(merged.rows
        == row_list{0, 1, 2047, 2048, 4'194'304, 4'194'305, 4'999'999});
  CHECK(get(merged.values, 0) == get(a.values, 9));
  CHECK(get(merged.values, 6 * 3) == get(a.values, 0));
}

TEST_CASE("values of a row are added by device, then by position") {
  selected_rows a = make_rows({5, 5}, 0, dtype::float32, 1);
  selected_rows b = make_rows({5, 5}, 0, dtype::float32, 1);
  set(a.values, 0, 1e8);
  set(a.values, 1, 1);
  set(b.values, 0, -1e8);
  set(b.values, 1, 1);
  const selected_rows* all[] = {&a, &b};
  CHECK(get(merge_rows(all, host()).values, 0)
        == ((1e8f + 1.0f) + -1e8f) + 1.0f);
}

TEST_CASE("concatenation keeps duplicates in device order") {
  auto a = make_rows({7, 2, 7}, 1), b = make_rows({7, 0}, 2);
  const selected_rows* all[] = {&b, nullptr, &a};
  auto merged = merge_rows(all, host(), row_merge::concatenate);
  CHECK(merged.rows == row_list{7, 0, 7, 2, 7});
  CHECK(merged.values.dims() == shape{5, 3});
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(get(merged.values, i) == get(b.values, i));
  for (std::size_t i = 0; i < 9; ++i)
    CHECK(get(merged.values, 6 + i) == get(a.values, i));
}

TEST_CASE("both forms give the same whole tensor") {
  std::vector<selected_rows> parts;
  for (unsigned r = 0; r < 4; ++r) {
    row_list rows;
    for (unsigned i = 0; i < 200; ++i)
      rows.push_back((i * 37 + r * 11) % 50);
    parts.push_back(make_rows(rows, r));
  }
  const selected_rows* all[] = {&parts[0], &parts[1], &parts[2], &parts[3]};
  auto added = merge_rows(all, host());
  CHECK(same_bits(added.values, merge_rows(all, host()).values));
  std::map<std::int64_t, double> sums;
  auto joined = merge_rows(all, host(), row_merge::concatenate);
  for (std::size_t i = 0; i < joined.rows.size(); ++i)
    sums[joined.rows[i]] += get(joined.values, i * 3 + 1);
  REQUIRE(added.rows.size() == sums.size());
  for (std::size_t i = 0; i < added.rows.size(); ++i)
    CHECK(std::abs(get(added.values, i * 3 + 1) - sums[added.rows[i]]) < 1e-4);
}

TEST_CASE("idle devices contribute no rows") {
  selected_rows idle;
  idle.height = 100;
  auto a = make_rows({4}, 1), none = make_rows({}, 1);
  const selected_rows* some[] = {&idle, nullptr, &none, &a};
  CHECK(merge_rows(some, host()).rows == row_list{4});
  const selected_rows* nobody[] = {nullptr, &idle};
  auto merged = merge_rows(nobody, host());
  CHECK(merged.rows.empty());
  CHECK(merged.height == 100);
  CHECK(!merged.values);
  CHECK(merge_rows({}, host()).rows.empty());
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
  good.values = tensor::make(host(), {2, 3}, dtype::float64);
  check_error(errc::dtype_mismatch,
              "merge_rows: values are float64, expected float32, float16, "
              "bfloat16 or int32",
              good, good);
}
} // TEST_SUITE("comm.sparse")
