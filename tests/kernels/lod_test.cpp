// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/lod.hpp>
#include <troupe/kernels/tensor.hpp>

#include <kernels/tensors.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace troupe {

using test::caught;
using test::says;

TEST_SUITE("kernels.lod") {

namespace {

struct host {
  arena memory{make_host_memory_source()};

  /// Six rows: two groups, of two sequences and of one.
  tensor grouped() {
    const std::vector<float> values{0, 1, 2, 3, 4, 5};
    auto t = test::make_floats(memory, values);
    t.set_levels(make_lod({{0, 2, 3}, {0, 1, 4, 6}}, 6));
    return t;
  }
};

} // namespace

TEST_CASE("offsets that do not cut the rows are refused with the level") {
  const auto refused = [](lod levels, const char* why) {
    const auto e = caught([&] { check_lod(levels, 4); });
    CHECK(e.code() == errc::invalid_argument);
    CHECK(says(e, why));
  };
  refused({{1, 4}}, "level 0 do not begin with 0");
  refused({{}}, "level 0 do not begin with 0");
  refused({{0, 3, 2, 4}}, "level 0 fall");
  refused({{0, 3}}, "level 0 end with 3 instead of 4");
  refused({{0, 2}, {0, 4}}, "level 0 end with 2 instead of 1");
  CHECK_NOTHROW(check_lod({{0, 0, 2}, {0, 4, 4}}, 4));
}

TEST_CASE("no levels are no sequences") {
  CHECK(make_lod({}, 7) == nullptr);
}

TEST_CASE_FIXTURE(host, "samples are the outermost sequences, with offsets "
                        "from 0") {
  const auto whole = grouped();
  CHECK(whole.num_samples() == 2);
  const auto last = whole.samples(1, 1);
  CHECK(test::floats(last) == std::vector<float>{4, 5});
  CHECK(*last.levels() == lod{{0, 1}, {0, 2}});
  const auto first = whole.samples(0, 1);
  CHECK(test::floats(first) == std::vector<float>{0, 1, 2, 3});
  CHECK(*first.levels() == lod{{0, 2}, {0, 1, 4}});
  CHECK(append_lod(*first.levels(), *last.levels()) == *whole.levels());
  CHECK(caught([&] { whole.samples(1, 2); }).code() == errc::out_of_range);
}

TEST_CASE_FIXTURE(host, "copies keep levels, other rows lose them") {
  const auto t = grouped();
  CHECK(clone(t, memory).levels() == t.levels());
  CHECK(cast(t, dtype::float64, memory).levels() == t.levels());
  CHECK(t.reshaped({6, 1}).levels() == t.levels());
  CHECK(t.reshaped({3, 2}).levels() == nullptr);
  CHECK(t.rows(0, 4).levels() == nullptr);
}

TEST_CASE("sequences of another depth cannot be joined") {
  CHECK(caught([] {
          append_lod({{0, 1}}, {{0, 1}, {0, 1}});
        }).code()
        == errc::shape_mismatch);
}
} // TEST_SUITE("kernels.lod")

} // namespace troupe
