// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/address_space.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <support/child_process.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>

namespace troupe {

TEST_SUITE("kernels.host_memory") {

namespace {

struct block {
  std::byte* data;
  std::size_t bytes;
};

std::vector<block> take(memory_source& from, std::size_t count,
                        std::size_t largest) {
  std::mt19937 random{7};
  std::vector<block> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bytes = 1 + random() % largest;
    blocks.push_back({from.allocate(bytes), bytes});
  }
  return blocks;
}

void give_back(memory_source& to, const std::vector<block>& blocks) {
  for (auto& b : blocks)
    to.deallocate(b.data, b.bytes);
}

std::size_t bytes_between(const block& a, const block& b) {
  const auto x = reinterpret_cast<std::uintptr_t>(a.data);
  const auto y = reinterpret_cast<std::uintptr_t>(b.data);
  return x < y ? y - x : x - y;
}

} // namespace

TEST_CASE("host memory begins at cache lines, small and large blocks alike") {
  auto source = make_host_memory_source();
  const auto blocks = take(*source, 200, 500'000);
  for (auto& b : blocks)
    CHECK(reinterpret_cast<std::uintptr_t>(b.data) % 64 == 0);
  give_back(*source, blocks);
}

TEST_CASE("blocks of host memory do not overlap") {
  auto source = make_host_memory_source();
  auto blocks = take(*source, 300, 300'000);
  blocks.push_back({source->allocate(40'000'000), 40'000'000});
  for (std::size_t i = 0; i < blocks.size(); ++i)
    std::memset(blocks[i].data, static_cast<int>(i % 251), blocks[i].bytes);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    CHECK(std::all_of(blocks[i].data, blocks[i].data + blocks[i].bytes,
                      [&](std::byte v) { return v == std::byte(i % 251); }));
  give_back(*source, blocks);
}

TEST_CASE("beyond a mebibyte small blocks lie side by side") {
  auto source = make_host_memory_source();
  const auto first = source->allocate(2'000'000);
  const std::vector<block> blocks{{source->allocate(20'000), 20'000},
                                  {source->allocate(20'000), 20'000}};
  CHECK(bytes_between(blocks[0], blocks[1]) >= 20'000);
  CHECK(bytes_between(blocks[0], blocks[1]) < 22'000);
  // Equal offsets in their pages would share sets of the first cache.
  CHECK(bytes_between(blocks[0], blocks[1]) % 4096 != 0);
  give_back(*source, blocks);
  source->deallocate(first, 2'000'000);
}

TEST_CASE("a large block grows and shrinks where it is") {
  auto source = make_host_memory_source();
  const std::size_t few = 3'000'000, many = 300'000'000;
  auto* const data = source->allocate(few);
  std::memset(data, 1, few);
  REQUIRE(source->resize(data, few, many));
  data[many - 1] = std::byte{2};
  CHECK(data[few - 1] == std::byte{1});
  REQUIRE(source->resize(data, many, few));
  REQUIRE(source->resize(data, few, many));
  CHECK(data[many - 1] == std::byte{0}); // the page had gone back
  CHECK(data[few - 1] == std::byte{1});
  source->deallocate(data, many);
}

TEST_CASE("no block grows beyond the machine's memory, nor does a small one") {
  auto source = make_host_memory_source();
  auto* const large = source->allocate(3'000'000);
  CHECK_FALSE(source->resize(large, 3'000'000, std::size_t{1} << 50));
  auto* const small = source->allocate(1000);
  CHECK_FALSE(source->resize(small, 1000, 2000));
  source->deallocate(large, 3'000'000);
  source->deallocate(small, 1000);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a block that grows leaves data to libraries") {
  const auto child = test::in_child([] {
    constexpr std::size_t mib = 1 << 20;
    const auto require = [](bool right, const char* what) {
      if (!right)
        throw std::runtime_error(what);
    };
    auto source = make_host_memory_source();
    auto* const data = source->allocate(3 * mib);
    // More than any process of this test has, and less than it is given.
    rlimit limit{4096 * mib, RLIM_INFINITY};
    ::setrlimit(RLIMIT_DATA, &limit);
    const auto bound = tightest_bound();
    require(std::string_view{bound.name} == "data (ulimit -d)", bound.name);
    limit.rlim_cur = limit.rlim_cur - bound.rest + 200 * mib;
    ::setrlimit(RLIMIT_DATA, &limit);
    require(!data_left(210 * mib) && data_left(190 * mib), "data_left");
    require(!addresses_left(210 * mib) && addresses_left(190 * mib),
            "addresses_left");
    require(!source->resize(data, 3 * mib, 160 * mib), "it grew too much");
    require(source->resize(data, 3 * mib, 120 * mib), "it did not grow");
    require(addresses_left(addresses_for_libraries), "too little is left");
    require(source->limit().find(", that of data (ulimit -d) ")
              != std::string::npos,
            "the limit is not named");
  });
  CHECK(test::exit_code(child) == 0);
}
#endif

TEST_CASE("what is discarded is whole pages inside") {
  auto source = make_host_memory_source();
  const std::size_t bytes = 3'000'000;
  auto* const data = source->allocate(bytes);
  std::memset(data, 7, bytes);
  source->discard(data + 1000, 10'000);
  CHECK(data[4095] == std::byte{7});
  CHECK(data[4096] == std::byte{0});
  CHECK(data[8191] == std::byte{0});
  CHECK(data[8192] == std::byte{7});
  source->discard(data + 100, 200);
  CHECK(data[200] == std::byte{7});
  source->deallocate(data, bytes);
}

TEST_CASE("memory that was given back is cut again from a new slab") {
  auto source = make_host_memory_source();
  for (int round = 0; round < 50; ++round) {
    const auto blocks = take(*source, 20, 2'000'000);
    for (auto& b : blocks) {
      REQUIRE(b.data != nullptr);
      b.data[b.bytes - 1] = std::byte{1};
    }
    give_back(*source, blocks);
  }
}
} // TEST_SUITE("kernels.host_memory")

} // namespace troupe
