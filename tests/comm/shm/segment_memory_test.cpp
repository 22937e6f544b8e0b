// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/comm/shm/segment_memory.hpp>
#include <troupe/comm/shm/shared_segment.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::comm::shm;
using troupe::test::caught;

TEST_SUITE("comm.shm.segment_memory") {

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::shared_ptr<shared_segment> make_segment(std::size_t bytes) {
  return std::make_shared<shared_segment>(shared_segment::make(bytes));
}

descriptor copy_of(int file) {
  return descriptor{::fcntl(file, F_DUPFD_CLOEXEC, 0)};
}

/// Bytes of memory that the segment's pages take.
std::size_t committed(const shared_segment& segment) {
  struct stat found {};
  ::fstat(segment.file(), &found);
  return static_cast<std::size_t>(found.st_blocks) * 512;
}

bool is_filled(const buffer& memory, std::size_t bytes, int value) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (memory.data()[i] != static_cast<std::byte>(value))
      return false;
  return true;
}

} // namespace

TEST_CASE("what one mapping of a segment writes, the other one reads") {
  auto one = shared_segment::make(4 * mib);
  auto other = shared_segment::adopt(copy_of(one.file()));
  CHECK(other.size() == one.size());
  CHECK(other.data() != one.data());
  REQUIRE(one.commit(mib, 100));
  one.data()[mib] = std::byte{7};
  CHECK(other.data()[mib] == std::byte{7});
  CHECK(one.contains(one.data() + mib, 3 * mib));
  CHECK(!one.contains(one.data() + mib, 3 * mib + 1));
  CHECK(!one.contains(one.data() - 1, 1));
  CHECK(one.offset_of(one.data() + 12) == 12);
}

TEST_CASE("nobody can change the size of a segment") {
  auto segment = shared_segment::make(mib);
  CHECK(::ftruncate(segment.file(), 0) != 0);
  CHECK(::ftruncate(segment.file(), 2 * mib) != 0);
}

TEST_CASE("a file that its owner could shrink is not a segment") {
  const descriptor file{::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  REQUIRE(::ftruncate(file.get(), mib) == 0);
  for (const char* path : {"/dev/null", "/proc/self/exe"}) {
    const auto e = caught([&] {
      shared_segment::adopt(descriptor{::open(path, O_RDONLY | O_CLOEXEC)});
    });
    CHECK(e.code() == errc::peer_failure);
  }
  CHECK(caught([&] { shared_segment::adopt(copy_of(file.get())); }).code()
        == errc::peer_failure);
  CHECK(caught([&] { shared_segment::adopt(descriptor{}); }).code()
        == errc::peer_failure);
}

TEST_CASE("memory is committed when it is taken and released when it is "
          "trimmed") {
  const auto segment = make_segment(64 * mib);
  const auto before = host_memory_reserved();
  {
    arena memory{make_segment_memory(segment)};
    CHECK(committed(*segment) == 0);
    auto large = memory.allocate(8 * mib);
    auto small = memory.allocate(100);
    CHECK(segment->contains(large.data(), 8 * mib));
    CHECK(segment->contains(small.data(), 100));
    CHECK(committed(*segment) >= 8 * mib);
    CHECK(committed(*segment) < 9 * mib);
    CHECK(host_memory_reserved() >= before + 8 * mib);
    large.reset();
    memory.trim();
    CHECK(committed(*segment) < mib);
  }
  CHECK(host_memory_reserved() == before);
  CHECK(committed(*segment) == 0);
}

TEST_CASE("the last large block grows in place") {
  const auto segment = make_segment(64 * mib);
  const auto source = make_segment_memory(segment);
  auto* first = source->allocate(mib);
  REQUIRE(first);
  auto* small = source->allocate(64);
  CHECK(source->resize(first, mib, 32 * mib));
  std::memset(first, 1, 32 * mib);
  CHECK(!source->resize(first, 32 * mib, 64 * mib)); // `small` is at the end
  CHECK(source->resize(first, 32 * mib, mib));
  CHECK(committed(*segment) < 2 * mib);
  auto* second = source->allocate(2 * mib);
  CHECK(second == first + mib);
  CHECK(!source->resize(first, mib, 2 * mib));
  source->deallocate(second, 2 * mib);
  source->deallocate(small, 64);
  source->deallocate(first, mib);
  auto* all = source->allocate(64 * mib); // the parts are joined again
  CHECK(all == segment->data());
  source->deallocate(all, 64 * mib);
}

TEST_CASE("a segment that is used up is an error that says its size") {
  const auto segment = make_segment(4 * mib);
  arena memory{make_segment_memory(segment)};
  auto held = memory.allocate(3 * mib);
  const auto e = caught([&] { memory.allocate(3 * mib); });
  CHECK(e.code() == errc::out_of_memory);
  CHECK(test::says(e, "shared memory has 4194304 bytes"));
  held.reset();
  memory.trim();
  CHECK(memory.allocate(3 * mib));
}

TEST_CASE("blocks in use keep their contents whatever else is taken and "
          "given back") {
  struct block {
    buffer memory;
    std::size_t bytes;
    int value;
  };
  const auto segment = make_segment(64 * mib);
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::minstd_rand random{seed};
    arena memory{make_segment_memory(segment)};
    std::vector<block> live;
    for (int round = 0; round < 300; ++round) {
      if (live.size() > 20 || (!live.empty() && random() % 3 == 0)) {
        const auto i = random() % live.size();
        CHECK(is_filled(live[i].memory, live[i].bytes, live[i].value));
        live[i] = std::move(live.back());
        live.pop_back();
      } else {
        const std::size_t bytes = 1 + random() % (round % 5 ? 5000 : mib);
        live.push_back({memory.allocate(bytes), bytes, int(random() % 256)});
        std::memset(live.back().memory.data(), live.back().value, bytes);
      }
      if (random() % 20 == 0)
        memory.trim();
    }
    for (auto& b : live)
      CHECK(is_filled(b.memory, b.bytes, b.value));
  }
}

} // TEST_SUITE("comm.shm.segment_memory")
