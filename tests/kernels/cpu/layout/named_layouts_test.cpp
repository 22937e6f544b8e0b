// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/conv/filter_blocks.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/layout/named_layouts.hpp>

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::cpu;

TEST_SUITE("kernels.cpu.layout.named_layouts") {

TEST_CASE("every layout of CPU kernels is found by its name") {
  for (const std::int64_t block : {4, 8, 16, 32})
    for (auto numbers : {precision::float32, precision::bfloat16}) {
      const shape dims{2, 32, 5, 3};
      const auto format = channel_blocks(dims, {block, numbers});
      const auto found = find_layout(format->name(), dims);
      REQUIRE(found);
      CHECK(found->equals(*format));
      CHECK(found->name() == format->name());
    }
  const shape filters{32, 16, 3, 3};
  const auto format = filter_blocks(filters);
  const auto found = find_layout(format->name(), filters);
  REQUIRE(found);
  CHECK(found->equals(*format));
}

TEST_CASE("other names, and shapes that do not fit, have no layout") {
  const shape dims{2, 32, 5, 3};
  for (const auto* name :
       {"", "nchw", "nChwc", "nChw0c", "nChw-8c", "nChw16", "nChw16c bf17",
        "nChw16cx", "nChw99999999999999c", "OIhw16i16", "shape only"})
    CHECK_FALSE(find_layout(name, dims));
  CHECK_FALSE(find_layout("nChw16c", shape{2, 8, 5, 3}));
  CHECK_FALSE(find_layout("nChw16c", shape{2, 32, 5}));
  CHECK_FALSE(find_layout("nChw16c", shape{}));
  CHECK_FALSE(find_layout("OIhw16i16o", shape{8, 16, 3, 3}));
}

} // TEST_SUITE("kernels.cpu.layout.named_layouts")
