// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/shape.hpp>

#include <support/caught.hpp>

#include <vector>

namespace troupe {

using test::caught;
using test::says;

TEST_SUITE("kernels.shape") {

TEST_CASE("a default shape is a scalar of one element") {
  shape scalar;
  CHECK(scalar.rank() == 0);
  CHECK(scalar.numel() == 1);
  CHECK(to_string(scalar) == "[]");
}

TEST_CASE("extents can be read by index, axis and range") {
  shape s{64, 1, 28, 28};
  CHECK(s.rank() == 4);
  CHECK(s[2] == 28);
  CHECK(s.dim(0) == 64);
  CHECK(s.dim(-1) == 28);
  CHECK(s.dim(-4) == 64);
  CHECK(std::vector<std::int64_t>(s.begin(), s.end())
        == std::vector<std::int64_t>{64, 1, 28, 28});
  CHECK(to_string(s) == "[64, 1, 28, 28]");
}

TEST_CASE("an axis that is not there is an error naming axis and shape") {
  shape s{2, 3};
  auto above = caught([&] { s.dim(2); });
  CHECK(above.code() == errc::out_of_range);
  CHECK(says(above, "axis 2 of the shape [2, 3]"));
  CHECK(caught([&] { s.dim(-3); }).code() == errc::out_of_range);
  CHECK(caught([&] { shape{}.dim(0); }).code() == errc::out_of_range);
}

TEST_CASE("rank 8 is possible, rank 9 is an error") {
  CHECK(shape{1, 2, 1, 2, 1, 2, 1, 2}.numel() == 16);
  auto failure = caught([] { shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; });
  CHECK(failure.code() == errc::invalid_argument);
  CHECK(says(failure, "rank 9"));
  std::vector<std::int64_t> many(1000, 1);
  CHECK(caught([&] { shape{std::span<const std::int64_t>(many)}; }).code()
        == errc::invalid_argument);
}

TEST_CASE("numel of a range multiplies the extents of that range") {
  shape s{2, 3, 5, 7};
  CHECK(s.numel() == 210);
  CHECK(s.numel(1, 3) == 15);
  CHECK(s.numel(0, 0) == 1);
  CHECK(s.numel(4, 4) == 1);
  CHECK(caught([&] { s.numel(3, 5); }).code() == errc::out_of_range);
  CHECK(caught([&] { s.numel(3, 2); }).code() == errc::out_of_range);
}

TEST_CASE("an unknown extent has no number of elements") {
  shape s{-1, 784};
  CHECK(s.has_unknown());
  CHECK_FALSE(shape{1, 784}.has_unknown());
  auto failure = caught([&] { s.numel(); });
  CHECK(failure.code() == errc::invalid_argument);
  CHECK(says(failure, "[-1, 784]"));
  CHECK(s.numel(1, 2) == 784);
}

TEST_CASE("numel reports overflow instead of wrapping around") {
  auto big = std::int64_t{1} << 40;
  CHECK(caught([&] {
          shape{big, big}.numel();
        }).code()
        == errc::invalid_argument);
  CHECK(shape{big, big, 0}.numel() == 0);
  CHECK(shape{0, big, big}.numel() == 0);
  CHECK(shape{big, 4}.numel() == big * 4);
}

TEST_CASE("shapes are equal if rank and extents are") {
  CHECK(shape{2, 3} == shape{2, 3});
  CHECK(shape{2, 3} != shape{3, 2});
  CHECK(shape{2} != shape{2, 0});
  CHECK(shape{} != shape{1});
}

} // TEST_SUITE("kernels.shape")

} // namespace troupe
