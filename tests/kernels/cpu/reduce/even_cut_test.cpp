// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/reduce/even_cut.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::cpu {

TEST_SUITE("kernels.cpu.even_cut") {

namespace {

using sizes = std::vector<std::int64_t>;

sizes sizes_of(const even_cut& cut) {
  sizes all;
  for (std::size_t i = 0; i < cut.parts(); ++i)
    all.push_back(cut.size(i));
  return all;
}

// Whether parts follow each other from 0 to `extent` and none is empty.
bool covers(const even_cut& cut, std::int64_t extent) {
  std::int64_t next = 0;
  for (std::size_t i = 0; i < cut.parts(); ++i) {
    if (cut.first(i) != next || cut.size(i) <= 0)
      return false;
    next += cut.size(i);
  }
  return next == extent;
}

// Whether all parts but the last have one size, a multiple of `grain`, which
// is no less than that of the last.
bool is_even(const even_cut& cut, std::int64_t grain) {
  for (std::size_t i = 0; i + 1 < cut.parts(); ++i)
    if (cut.size(i) % grain != 0 || cut.size(i) != cut.size(0))
      return false;
  return cut.parts() == 0 || cut.size(cut.parts() - 1) <= cut.size(0);
}

} // namespace

TEST_CASE("parts cover the extent once, in whole grains, in no more parts") {
  for (std::int64_t extent = 0; extent <= 70; ++extent)
    for (std::size_t most = 1; most <= 9; ++most)
      for (const std::int64_t grain : {1, 2, 3, 8, 16}) {
        CAPTURE(extent);
        CAPTURE(most);
        CAPTURE(grain);
        const even_cut cut{extent, most, grain};
        CHECK(cut.parts() <= most);
        CHECK(covers(cut, extent));
        CHECK(is_even(cut, grain));
      }
}

TEST_CASE("nothing has no parts") {
  CHECK(even_cut(0, 4).parts() == 0);
  CHECK(even_cut(0, 4, 16).parts() == 0);
}

TEST_CASE("less than a grain is one part") {
  CHECK(sizes_of({5, 4, 16}) == sizes{5});
  CHECK(sizes_of({16, 4, 16}) == sizes{16});
}

TEST_CASE("no part is empty if there are fewer elements than parts") {
  CHECK(sizes_of({3, 8}) == sizes{1, 1, 1});
  CHECK(sizes_of({33, 8, 16}) == sizes{16, 16, 1});
}

TEST_CASE("the last part takes what is left") {
  CHECK(sizes_of({7, 3}) == sizes{3, 3, 1});
  CHECK(sizes_of({6, 3}) == sizes{2, 2, 2});
  CHECK(sizes_of({4, 3}) == sizes{2, 2});
  CHECK(sizes_of({100, 3, 16}) == sizes{48, 48, 4});
  CHECK(sizes_of({10, 1}) == sizes{10});
}

TEST_CASE("extents may be large") {
  const auto extent = std::int64_t{1} << 40;
  const even_cut cut{extent, 3, 1024};
  CHECK(cut.parts() == 3);
  CHECK(covers(cut, extent));
}

TEST_CASE("parts are as many as are worth it, one at least") {
  CHECK(worthwhile_parts(4, 0, 100) == 1);
  CHECK(worthwhile_parts(4, 99, 100) == 1);
  CHECK(worthwhile_parts(4, 199, 100) == 1);
  CHECK(worthwhile_parts(4, 200, 100) == 2);
  CHECK(worthwhile_parts(4, 399, 100) == 3);
  CHECK(worthwhile_parts(4, 400, 100) == 4);
}

TEST_CASE("parts are no more than workers") {
  CHECK(worthwhile_parts(4, std::int64_t{1} << 50, 100) == 4);
  CHECK(worthwhile_parts(1, std::int64_t{1} << 50, 100) == 1);
}

} // TEST_SUITE("kernels.cpu.even_cut")

} // namespace troupe::cpu
