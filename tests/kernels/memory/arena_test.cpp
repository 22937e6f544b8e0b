// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/arena.hpp>

#include <kernels/memory/memory_sources.hpp>
#include <support/caught.hpp>

#include <array>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

using test::caught;
using test::limited_source;
using test::says;
using test::source_record;

TEST_SUITE("kernels.arena") {

namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

struct recorded_arena {
  explicit recorded_arena(std::size_t limit = SIZE_MAX)
    : memory(std::make_unique<limited_source>(record, limit)) {}
  source_record record;
  arena memory;
};

arena host_arena() {
  return arena{make_host_memory_source()};
}

bool is_aligned(const buffer& block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block.data()) % alignment == 0;
}

// Buffers on their way from the thread that filled them to one that checks.
class exchange {
public:
  /// With the bytes that were asked for.
  using filled_buffer = std::pair<buffer, std::size_t>;

  void put(filled_buffer filled) {
    std::lock_guard guard{lock_};
    waiting_.push_back(std::move(filled));
  }
  filled_buffer take() {
    std::lock_guard guard{lock_};
    if (waiting_.empty())
      return {};
    auto first = std::move(waiting_.front());
    waiting_.pop_front();
    return first;
  }

private:
  std::mutex lock_;
  std::deque<filled_buffer> waiting_;
};

// Fills what was asked for; the rest of a block belongs to nobody.
void fill(const buffer& block, std::size_t bytes) {
  auto value =
    static_cast<int>(reinterpret_cast<std::uintptr_t>(block.data()) / 64 % 251);
  std::memset(block.data(), value, bytes);
}

bool is_filled(const buffer& block, std::size_t bytes) {
  auto value = static_cast<std::byte>(
    reinterpret_cast<std::uintptr_t>(block.data()) / 64 % 251);
  for (std::size_t i = 0; i < bytes; ++i)
    if (block.data()[i] != value)
      return false;
  return true;
}

// Allocates, fills, passes on, takes another thread's buffer and checks it.
int hammer(arena& memory, exchange& others, unsigned seed, int rounds) {
  std::mt19937 random{seed};
  int broken = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto bytes = random() % (i % 8 == 0 ? 100'000 : 2000);
    auto mine = memory.allocate(bytes);
    fill(mine, bytes);
    others.put({mine, bytes}); // a second holder
    if (random() % 4 == 0)
      memory.trim();
    if (const auto [theirs, size] = others.take(); theirs)
      broken += !is_filled(theirs, size);
    broken += !is_filled(mine, bytes);
  }
  return broken;
}

// Swaps small blocks as fast as it can, each marked as its own meanwhile.
int swap_blocks(arena& memory, unsigned thread, int rounds) {
  std::array<buffer, 8> held;
  int broken = 0;
  for (int i = 0; i < rounds; ++i) {
    auto& slot = held[static_cast<std::size_t>(i) % held.size()];
    if (slot)
      broken += *reinterpret_cast<unsigned*>(slot.data()) != thread;
    slot.reset();
    slot = memory.allocate(8);
    *reinterpret_cast<unsigned*>(slot.data()) = thread;
  }
  return broken;
}

} // namespace

TEST_CASE("a block is large enough and wastes at most a quarter") {
  auto memory = host_arena();
  for (std::size_t power = 1; power <= mib; power *= 2)
    for (auto bytes : {power - 1, power, power + 1, power + power / 3}) {
      auto block = memory.allocate(bytes);
      CAPTURE(bytes);
      CHECK(block.capacity() >= bytes);
      CHECK(block.capacity() <= std::max(bytes + bytes / 4, bytes + 64));
      CHECK(is_aligned(block, 64));
    }
}

TEST_CASE("large host memory begins at a huge page and grows behind it") {
  auto memory = host_arena();
  const auto first = memory.allocate(2 * mib);
  const auto second = memory.allocate(5 * mib);
  CHECK(is_aligned(first, 2 * mib));
  CHECK(second.data() == first.data() + first.capacity());
  CHECK(memory.reserved_bytes() == first.capacity() + second.capacity());
}

TEST_CASE("large blocks of other sizes are cut from memory that was free") {
  auto memory = host_arena();
  memory.allocate(8 * mib).reset();
  const auto reserved = memory.reserved_bytes();
  const auto first = memory.allocate(3 * mib);
  const auto second = memory.allocate(4 * mib);
  CHECK(memory.reserved_bytes() == reserved);
  CHECK(second.data() == first.data() + first.capacity());
}

TEST_CASE("trimming empties memory between blocks that are held") {
  auto memory = host_arena();
  const auto first = memory.allocate(4 * mib);
  auto hole = memory.allocate(4 * mib);
  const auto last = memory.allocate(4 * mib);
  fill(first, 4 * mib);
  fill(hole, 4 * mib);
  fill(last, 4 * mib);
  hole.reset();
  memory.trim();
  CHECK(is_filled(first, 4 * mib));
  CHECK(is_filled(last, 4 * mib));
  hole = memory.allocate(4 * mib);
  CHECK(hole.data()[hole.capacity() / 2] == std::byte{0});
}

TEST_CASE("zero bytes give a valid buffer of its own") {
  auto memory = host_arena();
  auto first = memory.allocate(0);
  auto second = memory.allocate(0);
  CHECK(first);
  CHECK(first.data() != second.data());
}

TEST_CASE("an empty buffer has no data and can be reset and copied") {
  buffer none;
  auto copy = none;
  copy.reset();
  CHECK_FALSE(copy);
  CHECK(copy.data() == nullptr);
  CHECK(copy.capacity() == 0);
}

TEST_CASE("a block is live until its last holder lets go") {
  auto memory = host_arena();
  auto first = memory.allocate(1000);
  auto second = first;
  auto bytes = first.capacity();
  CHECK(memory.live_bytes() == bytes);
  first.reset();
  CHECK(memory.live_bytes() == bytes);
  auto moved = std::move(second);
  CHECK(memory.live_bytes() == bytes);
  moved = buffer{};
  CHECK(memory.live_bytes() == 0);
}

TEST_CASE("the block released last is given out first") {
  auto memory = host_arena();
  auto first = memory.allocate(500);
  auto second = memory.allocate(500);
  auto *first_data = first.data(), *second_data = second.data();
  first.reset();
  second.reset();
  auto third = memory.allocate(500);
  auto fourth = memory.allocate(500);
  CHECK(third.data() == second_data);
  CHECK(fourth.data() == first_data);
}

TEST_CASE("a reused block is not shared any more") {
  auto memory = host_arena();
  auto block = memory.allocate(100);
  block.block()->shared = true;
  auto* data = block.data();
  block.reset();
  block = memory.allocate(100);
  REQUIRE(block.data() == data);
  CHECK_FALSE(block.block()->shared);
}

TEST_CASE("a second round takes nothing from the source") {
  recorded_arena recorded;
  auto round = [&] {
    std::vector<buffer> held;
    for (std::size_t bytes = 0; bytes < 3 * mib; bytes = bytes * 3 / 2 + 50)
      for (int copies = 0; copies < 3; ++copies)
        held.push_back(recorded.memory.allocate(bytes));
  };
  round();
  auto allocations = recorded.record.allocations.load();
  CHECK(allocations > 0);
  round();
  CHECK(recorded.record.allocations == allocations);
}

TEST_CASE("live, peak and reserved bytes follow the buffers") {
  recorded_arena recorded;
  auto& memory = recorded.memory;
  auto first = memory.allocate(64 * kib);
  auto second = memory.allocate(32 * kib);
  const auto large = first.capacity(), both = large + 32 * kib;
  CHECK(memory.live_bytes() == both);
  first.reset();
  CHECK(memory.live_bytes() == 32 * kib);
  CHECK(memory.peak_bytes() == both);
  memory.allocate(16 * kib).reset();
  CHECK(memory.peak_bytes() == both);
  CHECK(memory.reserved_bytes() == both + 16 * kib);
  first = memory.allocate(64 * kib);
  CHECK(first.capacity() == large);
  CHECK(memory.peak_bytes() == both);
  CHECK(memory.reserved_bytes() == recorded.record.outstanding);
}

TEST_CASE("trimming gives back the cached blocks and keeps the held ones") {
  recorded_arena recorded;
  auto held = recorded.memory.allocate(64 * kib);
  recorded.memory.allocate(128 * kib).reset();
  recorded.memory.allocate(1 * kib).reset();
  recorded.memory.trim();
  CHECK(recorded.memory.reserved_bytes() == held.capacity());
  CHECK(recorded.record.outstanding == held.capacity());
  CHECK(recorded.memory.live_bytes() == held.capacity());
}

TEST_CASE("a full source is served from cached memory of other sizes") {
  recorded_arena recorded{mib};
  recorded.memory.allocate(600 * kib).reset();
  const auto first = recorded.memory.allocate(300 * kib);
  CHECK(recorded.record.allocations == 1); // cut from the cached block
  recorded.memory.allocate(400 * kib).reset();
  CHECK(recorded.record.allocations == 2);
  CHECK(recorded.memory.allocate(420 * kib)); // the 400 KiB went back for it
  CHECK(recorded.record.allocations == 3);
}

TEST_CASE("running out of memory is an error with all numbers") {
  recorded_arena recorded{mib};
  auto held = recorded.memory.allocate(512 * kib);
  auto failure = caught([&] { recorded.memory.allocate(700'000); });
  const auto bytes = std::to_string(held.capacity());
  CHECK(failure.code() == errc::out_of_memory);
  CHECK(says(failure, "700000 bytes"));
  CHECK(says(failure, bytes + " bytes are live"));
  CHECK(says(failure, bytes + " were at most"));
  CHECK(says(failure, bytes + " are reserved"));
}

TEST_CASE("an arena that ran out of memory stays usable") {
  recorded_arena recorded{mib};
  auto held = recorded.memory.allocate(512 * kib);
  caught([&] { recorded.memory.allocate(mib); });
  CHECK(recorded.memory.live_bytes() == held.capacity());
  CHECK(recorded.memory.allocate(256 * kib));
  held.reset();
  CHECK(recorded.memory.allocate(mib - kib));
}

TEST_CASE("an absurd request is an error, not an overflow") {
  auto memory = host_arena();
  for (auto bytes : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2})
    CHECK(caught([&] { memory.allocate(bytes); }).code()
          == errc::out_of_memory);
}

TEST_CASE("buffers may outlive their arena, and the source them") {
  source_record record;
  buffer first, second;
  {
    arena memory{std::make_unique<limited_source>(record)};
    first = memory.allocate(100);
    second = memory.allocate(200);
    memory.allocate(300).reset();
  }
  CHECK(record.outstanding == first.capacity() + second.capacity());
  fill(first, 100);
  first.reset();
  CHECK(record.outstanding == second.capacity());
  CHECK_FALSE(record.destroyed);
  second.reset();
  CHECK(record.outstanding == 0);
  CHECK(record.destroyed);
}

TEST_CASE("a large buffer that outlives its arena keeps its region alone") {
  source_record record;
  buffer held;
  {
    arena memory{std::make_unique<limited_source>(record)};
    held = memory.allocate(100 * kib);
    memory.allocate(200 * kib).reset();
    memory.allocate(100).reset();
  }
  CHECK(record.outstanding == held.capacity());
  fill(held, 100 * kib);
  held.reset();
  CHECK(record.outstanding == 0);
  CHECK(record.destroyed);
}

TEST_CASE("threads that share an arena never share a block by accident") {
  recorded_arena recorded;
  std::atomic<int> broken{0};
  {
    exchange others;
    std::vector<std::jthread> threads;
    for (unsigned seed = 0; seed < 4; ++seed)
      threads.emplace_back(
        [&, seed] { broken += hammer(recorded.memory, others, seed, 5000); });
    threads.clear();
  }
  CHECK(broken == 0);
  CHECK(recorded.memory.live_bytes() == 0);
  CHECK(recorded.memory.peak_bytes() > 0);
  CHECK(recorded.memory.reserved_bytes() == recorded.record.outstanding);
  recorded.memory.trim();
  CHECK(recorded.record.outstanding == 0);
}

TEST_CASE("threads that swap blocks at full speed keep the lists whole") {
  recorded_arena recorded;
  std::atomic<int> broken{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        broken += swap_blocks(recorded.memory, thread, 200'000);
      });
  }
  CHECK(broken == 0);
  CHECK(recorded.memory.live_bytes() == 0);
  CHECK(recorded.record.allocations <= 4 * 8);
  recorded.memory.trim();
  CHECK(recorded.record.outstanding == 0);
}

} // TEST_SUITE("kernels.arena")

} // namespace troupe
