// SPDX-License-Identifier: Apache-2.0
#include <support/op_compare.hpp>
#include <support/op_runner.hpp>

#include <troupe/kernels/kernel.hpp>

#include <doctest/doctest.h>

namespace troupe::test {

TEST_SUITE("kernels.ref.embedding") {

namespace {

op_value gradient(std::vector<double> ids, bool sparse, std::int64_t padding) {
  const auto count = static_cast<std::int64_t>(ids.size());
  const op_case c{
    .type = "lookup_table_v2_grad",
    .inputs = {{"W", {random_values({6, 3}, 1)}},
               {"Ids", {values_of({count}, std::move(ids), dtype::int64)}},
               {"Out@GRAD", {random_values({count, 3}, 2)}}},
    .attributes = {{"is_sparse", sparse}, {"padding_idx", padding}},
    .outputs = {{"W@GRAD", 1}}};
  return run_op(reference_kernels(), with_float_type(c, dtype::float64))
    .at("W@GRAD")[0];
}

} // namespace

TEST_CASE("a lookup copies rows and blanks the padding") {
  const op_case c{
    .type = "lookup_table_v2",
    .inputs = {{"W", {values_of({3, 2}, {1, 2, 3, 4, 5, 6})}},
               {"Ids", {values_of({3}, {2, 0, 1}, dtype::int64)}}},
    .attributes = {{"padding_idx", std::int64_t{0}}}};
  CHECK(run_op(reference_kernels(), c).at("Out")[0].elements
        == std::vector<double>{5, 6, 0, 0, 3, 4});
}

TEST_CASE("the row-sparse gradient stands for the dense one") {
  const auto dense = gradient({4, 2, 4, 0, 4}, false, -1);
  const auto rows = gradient({4, 2, 4, 0, 4}, true, -1);
  REQUIRE(rows.is_rows());
  CHECK(rows.height == 6);
  CHECK(rows.rows == std::vector<std::int64_t>{4, 2, 4, 0, 4});
  CHECK(difference(densify(rows), dense, 1e-15) == "");
}

TEST_CASE("padding has a gradient if it is row-sparse, as in Paddle") {
  const auto rows = gradient({4, 2, 4, 0, 4}, true, 2);
  CHECK(rows.elements == gradient({4, 2, 4, 0, 4}, true, -1).elements);
  const auto dense = gradient({4, 2, 4, 0, 4}, false, 2);
  CHECK(dense.elements != gradient({4, 2, 4, 0, 4}, false, -1).elements);
}

TEST_CASE("the gradient of a table without ids is zero") {
  CHECK(magnitude(gradient({}, false, -1)) == 0);
  CHECK(gradient({}, true, -1).rows.empty());
}
} // TEST_SUITE("kernels.ref.embedding")

} // namespace troupe::test
