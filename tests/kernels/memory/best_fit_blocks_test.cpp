// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/best_fit_blocks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace troupe {

TEST_SUITE("kernels.best_fit_blocks") {

namespace {

constexpr std::size_t kib = 1024;

/// One region at a time from `addresses` bytes, which can grow up to them.
class growing_source final : public memory_source {
public:
  explicit growing_source(std::size_t addresses)
    : addresses_(addresses), memory_(std::make_unique<std::byte[]>(addresses)) {
  }

  std::byte* allocate(std::size_t bytes) noexcept override {
    if (given > 0 || bytes > addresses_)
      return nullptr;
    given = bytes;
    return memory_.get();
  }
  void deallocate(std::byte*, std::size_t bytes) noexcept override {
    whole = whole && bytes == given;
    given = 0;
  }
  bool resize(std::byte* data, std::size_t bytes,
              std::size_t wanted) noexcept override {
    whole = whole && data == memory_.get() && bytes == given;
    if (wanted > addresses_)
      return false;
    given = wanted;
    return true;
  }
  void discard(std::byte* data, std::size_t bytes) noexcept override {
    std::memset(data, 0, bytes);
    discarded += bytes;
  }

  std::size_t given = 0;
  std::size_t discarded = 0;
  bool whole = true; ///< what came back is what was given

private:
  std::size_t addresses_;
  std::unique_ptr<std::byte[]> memory_;
};

/// Cannot grow.
class fixed_source final : public memory_source {
public:
  std::byte* allocate(std::size_t bytes) noexcept override {
    ++regions;
    return new (std::nothrow) std::byte[bytes];
  }
  void deallocate(std::byte* data, std::size_t) noexcept override {
    --regions;
    delete[] data;
  }
  int regions = 0;
};

struct growing {
  explicit growing(std::size_t addresses) : source(addresses) {}
  growing_source source;
  best_fit_blocks blocks{source};
};

/// Blocks one behind the other.
std::vector<memory_block*> take(best_fit_blocks& from,
                                std::initializer_list<std::size_t> sizes) {
  std::vector<memory_block*> taken;
  for (auto bytes : sizes)
    taken.push_back(from.take(bytes));
  return taken;
}

void fill(const memory_block& b, std::size_t mark) {
  std::memset(b.data, static_cast<int>(mark % 251), b.capacity);
}

bool is_filled(const memory_block& b, std::size_t mark) {
  return std::all_of(b.data, b.data + b.capacity, [mark](std::byte v) {
    return v == std::byte(mark % 251);
  });
}

} // namespace

TEST_CASE("a region grows by what is asked for") {
  growing g{1000 * kib};
  auto b = take(g.blocks, {100 * kib, 50 * kib, 200 * kib});
  CHECK(b[1]->data == b[0]->data + b[0]->capacity);
  CHECK(b[2]->data == b[1]->data + b[1]->capacity);
  CHECK(g.source.given == g.blocks.reserved_bytes());
  CHECK(g.source.given < 352 * kib);
  for (auto* block : b)
    g.blocks.give(block);
}

TEST_CASE("a free end counts towards what a region grows by") {
  growing g{1000 * kib};
  auto b = take(g.blocks, {100 * kib, 50 * kib});
  g.blocks.give(b[1]);
  auto* larger = g.blocks.take(80 * kib);
  CHECK(larger->data == b[1]->data);
  CHECK(g.source.given < 182 * kib);
  g.blocks.give(larger);
  g.blocks.give(b[0]);
}

TEST_CASE("the free piece that fits best is split, the larger one stays") {
  growing g{1000 * kib};
  auto b = take(g.blocks, {200 * kib, 40 * kib, 100 * kib, 40 * kib});
  auto* const large = b[0]->data;
  auto* const fitting = b[2]->data;
  g.blocks.give(b[0]);
  g.blocks.give(b[2]);
  auto* first = g.blocks.take(60 * kib);
  CHECK(first->data == fitting);
  auto* second = g.blocks.take(150 * kib);
  CHECK(second->data == large);
  auto* third = g.blocks.take(36 * kib); // the rest of `fitting`
  CHECK(third->data == first->data + first->capacity);
  for (auto* block : {first, second, third, b[1], b[3]})
    g.blocks.give(block);
}

TEST_CASE("neighbours join in whatever order they come back") {
  std::vector<std::size_t> order{0, 1, 2};
  do {
    growing g{1000 * kib};
    auto b = take(g.blocks, {64 * kib, 64 * kib, 64 * kib, 64 * kib});
    auto* const begin = b[0]->data;
    const auto before = g.source.given;
    for (auto i : order)
      g.blocks.give(b[i]);
    auto* all = g.blocks.take(190 * kib);
    CHECK(all->data == begin);
    CHECK(g.source.given == before);
    g.blocks.give(all);
    g.blocks.give(b[3]);
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("a source that cannot grow gives a region for each block") {
  fixed_source source;
  {
    best_fit_blocks blocks{source};
    auto b = take(blocks, {64 * kib, 64 * kib});
    CHECK(source.regions == 2);
    for (auto* block : b)
      blocks.give(block);
    blocks.give(blocks.take(60 * kib));
    CHECK(source.regions == 2);
    blocks.give(blocks.take(100 * kib)); // two regions are no neighbours
    CHECK(source.regions == 3);
  }
  CHECK(source.regions == 0);
}

TEST_CASE("a full source gives none and leaves the rest as it is") {
  growing g{300 * kib};
  auto b = take(g.blocks, {100 * kib, 100 * kib});
  const auto before = g.source.given;
  CHECK(g.blocks.take(200 * kib) == nullptr);
  CHECK(g.source.given == before);
  auto* small = g.blocks.take(90 * kib);
  CHECK(small != nullptr);
  for (auto* block : {b[0], b[1], small})
    g.blocks.give(block);
}

TEST_CASE("trimming gives back the free end and discards holes") {
  growing g{1000 * kib};
  auto b = take(g.blocks, {100 * kib, 50 * kib, 70 * kib, 200 * kib});
  fill(*b[0], 1);
  fill(*b[2], 2);
  const auto hole = b[1]->capacity, end = b[3]->capacity;
  const auto before = g.source.given;
  g.blocks.give(b[1]);
  g.blocks.give(b[3]);
  g.blocks.trim();
  CHECK(g.source.given == before - end);
  CHECK(g.source.discarded == hole);
  CHECK(g.blocks.reserved_bytes() == g.source.given);
  CHECK(is_filled(*b[0], 1));
  CHECK(is_filled(*b[2], 2));
  auto* again = g.blocks.take(50 * kib);
  CHECK(again == b[1]);
  for (auto* block : {b[0], b[2], again})
    g.blocks.give(block);
  g.blocks.trim();
  CHECK(g.source.given == 0);
  CHECK(g.source.whole);
}

TEST_CASE("blocks never overlap, and all join in the end") {
  growing g{20'000 * kib};
  std::mt19937 random{11};
  struct marked {
    memory_block* block;
    std::size_t mark;
  };
  std::vector<marked> held;
  int broken = 0;
  for (std::size_t i = 0; i < 20'000; ++i) {
    if (held.size() < 30 && random() % 2 == 0) {
      auto* block = g.blocks.take(33 * kib + random() % (200 * kib));
      REQUIRE(block != nullptr);
      fill(*block, i);
      held.push_back({block, i});
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      broken += !is_filled(*held.back().block, held.back().mark);
      g.blocks.give(held.back().block);
      held.pop_back();
    }
  }
  CHECK(broken == 0);
  for (auto& h : held)
    g.blocks.give(h.block);
  const auto all = g.blocks.reserved_bytes();
  auto* whole = g.blocks.take(all - kib);
  CHECK(g.blocks.reserved_bytes() == all);
  CHECK(whole->capacity == all);
  g.blocks.give(whole);
}

TEST_CASE("a step that repeats takes nothing more from the source") {
  growing g{100'000 * kib};
  const auto step = [&] {
    std::vector<memory_block*> values;
    for (std::size_t i = 0; i < 40; ++i) {
      auto* scratch = g.blocks.take((40 + i * 37 % 300) * kib);
      values.push_back(g.blocks.take((33 + i * 53 % 200) * kib));
      g.blocks.give(scratch);
    }
    while (!values.empty()) {
      auto* scratch = g.blocks.take(values.size() * 60 % 700 * kib);
      g.blocks.give(values.back());
      values.pop_back();
      g.blocks.give(scratch);
    }
  };
  step();
  const auto reserved = g.blocks.reserved_bytes();
  for (int i = 0; i < 3; ++i)
    step();
  CHECK(g.blocks.reserved_bytes() == reserved);
}

} // TEST_SUITE("kernels.best_fit_blocks")

} // namespace troupe
