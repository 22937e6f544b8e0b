// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

namespace troupe {

using test::caught;

TEST_SUITE("kernels.reuse_mark") {

namespace {

constexpr std::size_t small = 100;
constexpr std::size_t large = 100 * 1024;

/// What a source of ordered memory is asked; outlives it.
struct order_record {
  reuse_mark now = {}; ///< of blocks that are returned
  std::vector<reuse_mark> waited = {};
  bool refuses = false;
};

class ordered_source final : public memory_source {
public:
  explicit ordered_source(order_record& record) : record_(record) {}
  std::byte* allocate(std::size_t bytes) noexcept override {
    return host_->allocate(bytes);
  }
  void deallocate(std::byte* data, std::size_t bytes) noexcept override {
    host_->deallocate(data, bytes);
  }
  bool is_ordered() const noexcept override { return true; }
  reuse_mark returned() noexcept override { return record_.now; }
  void reuse(const reuse_mark& mark) override {
    if (record_.refuses)
      throw error(errc::kernel_failure, "no event");
    record_.waited.push_back(mark);
  }

private:
  order_record& record_;
  std::unique_ptr<memory_source> host_ = make_host_memory_source();
};

struct ordered_arena {
  order_record record;
  arena memory{std::make_unique<ordered_source>(record)};

  void take_and_return(std::size_t bytes, const reuse_mark& mark) {
    auto block = memory.allocate(bytes);
    record.now = mark;
    block.reset();
  }
};

bool same(const reuse_mark& a, const reuse_mark& b) {
  return a.stream == b.stream && a.position == b.position;
}

} // namespace

TEST_CASE("a block is handed out again after its mark") {
  for (auto bytes : {small, large}) {
    ordered_arena a;
    a.take_and_return(bytes, {1, 7});
    CHECK(a.record.waited.empty()); // new memory has no mark
    const auto again = a.memory.allocate(bytes);
    REQUIRE(a.record.waited.size() == 1);
    CHECK(same(a.record.waited[0], {1, 7}));
  }
}

TEST_CASE("blocks that are joined have both marks") {
  ordered_arena a;
  a.take_and_return(4 * large, {});
  auto first = a.memory.allocate(large), second = a.memory.allocate(large);
  a.record.now = {1, 7};
  first.reset();
  a.record.now = {2, 5};
  second.reset();
  const auto both = a.memory.allocate(3 * large);
  REQUIRE(a.record.waited.size() == 1);
  CHECK(same(a.record.waited[0], {reuse_mark::several, 7}));
}

TEST_CASE("a block that variables share has the marks of all") {
  for (bool is_shared : {true, false}) {
    ordered_arena a;
    auto first = a.memory.allocate(small);
    auto second = first;
    first.block()->shared = is_shared;
    a.record.now = {1, 7};
    first.reset();
    a.record.now = {2, 5};
    second.reset();
    const auto again = a.memory.allocate(small);
    REQUIRE(a.record.waited.size() == 1);
    CHECK(same(a.record.waited[0], is_shared
                                     ? reuse_mark{reuse_mark::several, 7}
                                     : reuse_mark{2, 5}));
  }
}

TEST_CASE("both parts of a block that is cut keep its mark") {
  ordered_arena a;
  a.take_and_return(3 * large, {4, 9});
  const auto first = a.memory.allocate(large),
             second = a.memory.allocate(large);
  REQUIRE(a.record.waited.size() == 2);
  CHECK(same(a.record.waited[1], {4, 9}));
}

TEST_CASE(
  "a block whose mark cannot be waited for is free, and keeps its mark") {
  for (auto bytes : {small, large}) {
    ordered_arena a;
    a.take_and_return(bytes, {3, 2});
    a.record.refuses = true;
    CHECK(caught([&] { a.memory.allocate(bytes); }).code()
          == errc::kernel_failure);
    CHECK(a.memory.live_bytes() == 0);
    a.record.refuses = false;
    const auto again = a.memory.allocate(bytes);
    REQUIRE(a.record.waited.size() == 1);
    CHECK(same(a.record.waited[0], {3, 2}));
  }
}

TEST_CASE("two marks make the later one, of one stream or of several") {
  const auto joined = [](const reuse_mark& a, const reuse_mark& b) {
    return both(a, b);
  };
  CHECK(same(joined({}, {1, 3}), {1, 3}));
  CHECK(same(joined({1, 3}, {}), {1, 3}));
  CHECK(same(joined({1, 3}, {1, 2}), {1, 3}));
  CHECK(same(joined({1, 3}, {2, 4}), {reuse_mark::several, 4}));
}

} // TEST_SUITE("kernels.reuse_mark")

} // namespace troupe
