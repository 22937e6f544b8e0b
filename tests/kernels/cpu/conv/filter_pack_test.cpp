// SPDX-License-Identifier: Apache-2.0
// Filters in the order that oneDNN's convolutions read, beside the library's
// own reorder.
#include <troupe/kernels/cpu/conv/filter_pack.hpp>
#include <troupe/kernels/cpu/layout/blocked_primitive.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::cpu;
using dnnl::memory;

TEST_SUITE("kernels.cpu.filter_pack") {

namespace {

struct blocks {
  const char* name;
  memory::data_type type;
  memory::format_tag tag;
};

/// What convolutions ask for, forward and for input gradients.
constexpr blocks packed[] = {
  {"OIhw16i16o", memory::data_type::f32, memory::format_tag::OIhw16i16o},
  {"OIhw16o16i", memory::data_type::f32, memory::format_tag::OIhw16o16i},
  {"IOhw16o16i", memory::data_type::f32, memory::format_tag::IOhw16o16i},
  {"OIhw8i16o2i", memory::data_type::bf16, memory::format_tag::OIhw8i16o2i},
  {"OIhw8o16i2o", memory::data_type::bf16, memory::format_tag::OIhw8o16i2o},
  {"IOhw8o16i2o", memory::data_type::bf16, memory::format_tag::IOhw8o16i2o},
};

memory::desc plain(const memory::dims& dims) {
  return {dims, memory::data_type::f32, memory::format_tag::oihw};
}

/// Numbers of all magnitudes, halves between two roundings among them.
std::vector<float> values(std::size_t count) {
  std::mt19937 draw{7};
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto mantissa = 1.0f + static_cast<float>(draw() >> 8) * 0x1p-24f;
    all[i] = std::ldexp(mantissa, static_cast<int>(draw() % 40) - 20);
    if (i % 3 == 0)
      all[i] = -all[i];
    if (i % 5 == 0) // ends in one half of the last bit that is kept
      all[i] = std::ldexp(1.0f + static_cast<float>(draw() % 256) * 0x1p-8f, 3);
  }
  return all;
}

std::vector<std::byte> by_library(const memory::desc& from,
                                  const memory::desc& to,
                                  const std::vector<float>& x) {
  std::vector<std::byte> out(to.get_size());
  memory source(from, cpu_engine(), const_cast<float*>(x.data()));
  memory target(to, cpu_engine(), out.data());
  dnnl::stream queue(cpu_engine());
  dnnl::reorder(source, target).execute(queue, source, target);
  queue.wait();
  return out;
}

} // namespace

TEST_CASE("packed filters are the library's, bit by bit") {
  for (const auto& to : packed)
    for (const memory::dims& dims : {memory::dims{16, 16, 1, 1},
                                     {32, 80, 1, 1},
                                     {48, 16, 1, 1},
                                     {32, 48, 3, 3},
                                     {16, 32, 5, 5},
                                     {32, 16, 1, 7}}) {
      CAPTURE(std::string{to.name});
      CAPTURE(dims[0]);
      CAPTURE(dims[3]);
      const memory::desc target{dims, to.type, to.tag};
      const auto pack = filter_pack::between(plain(dims), target);
      REQUIRE(pack);
      const auto x = values(plain(dims).get_size() / sizeof(float));
      std::vector<std::byte> out(target.get_size());
      pack->run(x.data(), out.data());
      CHECK(out == by_library(plain(dims), target, x));
    }
}

TEST_CASE("blocks of output channels are packed apart") {
  const memory::dims dims{48, 32, 3, 3};
  const memory::desc blocked{dims, memory::data_type::f32,
                             memory::format_tag::OIhw16i16o};
  for (const auto& from : {plain(dims), blocked})
    for (const auto& to : packed) {
      CAPTURE(std::string{to.name});
      const memory::desc target{dims, to.type, to.tag};
      const auto pack = filter_pack::between(from, target);
      const auto x = values(from.get_size() / sizeof(float));
      REQUIRE(pack->out_blocks() == 3);
      REQUIRE(pack->packed_bytes() == target.get_size());
      std::vector<std::byte> whole(target.get_size()), parts = whole;
      pack->run(x.data(), whole.data());
      pack->run(x.data(), parts.data(), 1, 2);
      CHECK(parts != whole);
      pack->run(x.data(), parts.data(), 0, 1);
      CHECK(parts == whole);
    }
}

TEST_CASE("filters that lie in blocks already are packed likewise") {
  constexpr auto f32 = memory::data_type::f32;
  for (const auto& to : packed)
    for (const memory::dims& dims : {memory::dims{16, 16, 1, 1},
                                     {32, 48, 1, 1},
                                     {48, 32, 3, 3},
                                     {32, 16, 5, 5}}) {
      CAPTURE(std::string{to.name});
      CAPTURE(dims[3]);
      const memory::desc from{dims, f32, memory::format_tag::OIhw16i16o};
      const memory::desc target{dims, to.type, to.tag};
      const auto pack = filter_pack::between(from, target);
      REQUIRE(pack);
      const auto x = values(from.get_size() / sizeof(float));
      std::vector<std::byte> out(target.get_size());
      pack->run(x.data(), out.data());
      CHECK(out == by_library(from, target, x));
    }
}

TEST_CASE("some input channels of a filter in blocks are packed") {
  constexpr auto f32 = memory::data_type::f32;
  const memory::dims dims{32, 128, 3, 3}, part{32, 64, 3, 3};
  const auto from =
    memory::desc{dims, f32, memory::format_tag::OIhw16i16o}.submemory_desc(
      part, {0, 0, 0, 0});
  const auto x = values(from.get_size() / sizeof(float));
  for (const auto& to : packed) {
    CAPTURE(std::string{to.name});
    const memory::desc target{part, to.type, to.tag};
    const auto pack = filter_pack::between(from, target);
    REQUIRE(pack);
    std::vector<std::byte> out(target.get_size());
    pack->run(x.data(), out.data());
    CHECK(out == by_library(from, target, x));
  }
}

TEST_CASE("what is not finite stays so when it is rounded") {
  const memory::dims dims{16, 16, 1, 1};
  const memory::desc target{dims, memory::data_type::bf16,
                            memory::format_tag::OIhw8o16i2o};
  std::vector<float> x(256, 1.0f);
  x[0] = std::numeric_limits<float>::quiet_NaN();
  x[1] = std::numeric_limits<float>::infinity();
  x[2] = -std::numeric_limits<float>::infinity();
  const std::uint32_t low_nan = 0x7f800001; // nothing in the half that is kept
  std::memcpy(&x[3], &low_nan, sizeof low_nan);
  std::vector<std::uint16_t> out(256);
  filter_pack::between(plain(dims), target)->run(x.data(), out.data());
  const auto back = [&](std::size_t in) { // of output channel 0
    const auto bits = static_cast<std::uint32_t>(out[2 * in]) << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  };
  CHECK(std::isnan(back(0)));
  CHECK(back(1) == std::numeric_limits<float>::infinity());
  CHECK(back(2) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(back(3)));
  CHECK(back(4) == 1.0f);
}

TEST_CASE("other filters are left to the library") {
  using tag = memory::format_tag;
  constexpr auto f32 = memory::data_type::f32;
  const memory::dims pointwise{32, 32, 1, 1};
  const auto to = [&](const memory::dims& dims, tag t) {
    return filter_pack::between(plain(dims), {dims, f32, t});
  };
  CHECK(to(pointwise, tag::OIhw16i16o));
  CHECK_FALSE(to({32, 32, 7, 7}, tag::OIhw16i16o));
  CHECK_FALSE(to({32, 24, 1, 1}, tag::OIhw16i16o));
  CHECK_FALSE(to({24, 32, 1, 1}, tag::OIhw16i16o));
  CHECK_FALSE(to(pointwise, tag::OIhw8i8o));
  CHECK_FALSE(to(pointwise, tag::hwio));
  CHECK_FALSE(to({32, 32, 3, 3}, tag::hwio));
  CHECK_FALSE(
    filter_pack::between({pointwise, f32, tag::OIhw16i16o}, plain(pointwise)));
}

} // TEST_SUITE("kernels.cpu.filter_pack")
