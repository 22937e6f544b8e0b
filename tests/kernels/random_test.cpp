// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace troupe {

TEST_SUITE("kernels.random") {

namespace {

using words = std::array<std::uint32_t, 4>;

constexpr int samples = 200'000;

std::vector<double> normals(const philox& random) {
  std::vector<double> all(samples);
  for (int i = 0; i < samples; ++i)
    all[i] = random.normal(i);
  return all;
}

double moment(const std::vector<double>& all, int power) {
  double sum = 0;
  for (auto value : all)
    sum += std::pow(value, power);
  return sum / static_cast<double>(all.size());
}

} // namespace

// Random123's kat_vectors for philox4x32 with 10 rounds.
TEST_CASE("philox gives the published answers") {
  CHECK(philox_4x32_10({0, 0, 0, 0}, {0, 0})
        == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr auto ones = ~std::uint32_t{0};
  CHECK(philox_4x32_10({ones, ones, ones, ones}, {ones, ones})
        == words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox_4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0})
        == words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("seed, stream, step and block number are key and counter") {
  philox random{0x299f31d0'a4093822, 0x03707344, 0x13198a2e};
  CHECK(random.block(0x85a308d3'243f6a88)
        == words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("seeds, streams and steps give different sequences") {
  auto first = philox{1, 2, 3}.block(0);
  CHECK(philox{1, 2, 3}.block(0) == first);
  CHECK(philox{2, 2, 3}.block(0) != first);
  CHECK(philox{std::uint64_t{1} << 32 | 1, 2, 3}.block(0) != first);
  CHECK(philox{1, 3, 3}.block(0) != first);
  CHECK(philox{1, 2, 4}.block(0) != first);
}

TEST_CASE("uniform numbers are the upper 24 bits of the words in order") {
  philox random{5, 6, 7};
  for (std::uint64_t i = 0; i < 16; ++i) {
    auto word = random.block(i / 4)[i % 4];
    CHECK(random.uniform(i) == std::ldexp(static_cast<float>(word >> 8), -24));
  }
}

TEST_CASE("uniform numbers fill 0 to 1 evenly") {
  philox random{1, 0, 0};
  std::vector<int> bins(10);
  double sum = 0;
  for (int i = 0; i < samples; ++i) {
    auto value = random.uniform(i);
    REQUIRE(value >= 0);
    REQUIRE(value < 1);
    sum += value;
    ++bins[static_cast<std::size_t>(value * 10)];
  }
  CHECK(sum / samples == doctest::Approx(0.5).epsilon(0.005));
  // 5 standard deviations of a bin's count are 670.
  for (auto count : bins)
    CHECK(std::abs(count - samples / 10) < 670);
}

TEST_CASE("normal numbers have the moments of the normal distribution") {
  auto all = normals(philox{1, 0, 0});
  CHECK(std::abs(moment(all, 1)) < 0.01);
  CHECK(std::abs(moment(all, 2) - 1) < 0.02);
  CHECK(std::abs(moment(all, 3)) < 0.05);
  CHECK(std::abs(moment(all, 4) - 3) < 0.15);
  CHECK(std::all_of(all.begin(), all.end(),
                    [](double value) { return std::isfinite(value); }));
}

TEST_CASE("normal numbers lie within one sigma as often as they should") {
  auto all = normals(philox{3, 0, 0});
  auto within = std::count_if(all.begin(), all.end(),
                              [](double value) { return std::abs(value) < 1; });
  CHECK(std::abs(static_cast<double>(within) / samples
                 - std::erf(1 / std::numbers::sqrt2))
        < 0.006);
}

TEST_CASE("neighbouring normal numbers are not correlated") {
  auto all = normals(philox{2, 0, 0});
  for (int distance : {1, 2, 3, 4}) {
    double sum = 0;
    for (int i = 0; i + distance < samples; ++i)
      sum += all[i] * all[i + distance];
    CHECK(std::abs(sum / samples) < 0.012);
  }
}

TEST_CASE("normal numbers do not come from the blocks of uniform ones") {
  philox random{1, 0, 0};
  auto words_of_uniform = random.block(0);
  auto radius = std::sqrt(-2 * std::log((words_of_uniform[0] + 1.0) * 0x1p-32));
  auto drawn = std::hypot(random.normal(0), random.normal(1));
  CHECK(drawn != doctest::Approx(radius));
}

TEST_CASE("numbers of a block are those that are drawn one by one") {
  const philox random{1, 2, 3};
  for (std::uint64_t block :
       {std::uint64_t{0}, std::uint64_t{5}, (std::uint64_t{1} << 62) - 1}) {
    const auto uniform = random.uniform_block(block);
    const auto normal = random.normal_block(block);
    for (std::uint64_t i = 0; i < 4; ++i) {
      CHECK(uniform[i] == random.uniform(4 * block + i));
      CHECK(normal[i] == random.normal(4 * block + i));
    }
  }
}

TEST_CASE("a reader of blocks gives numbers in any order") {
  const philox random{1, 2, 3};
  block_reader<float> normal(random, &philox::normal_block);
  block_reader<std::uint32_t> word(random, &philox::block);
  for (std::uint64_t i : {0, 1, 2, 3, 4, 3, 3, 17, 0, 9, 8}) {
    CHECK(normal(i) == random.normal(i));
    CHECK(word(i) == random.block(i / 4)[i % 4]);
  }
}

TEST_CASE("the hash of a name is FNV-1a") {
  CHECK(stable_hash("") == 0x811c9dc5);
  CHECK(stable_hash("a") == 0xe40c292c);
  CHECK(stable_hash("foobar") == 0xbf9cf968);
  CHECK(stable_hash("\xff") == ((0x811c9dc5u ^ 0xffu) * 16777619u));
}

} // TEST_SUITE("kernels.random")

} // namespace troupe
