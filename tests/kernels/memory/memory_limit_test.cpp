// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("kernels.memory_limit") {

namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;

/// Holds the process to `bytes` bytes more than it has now.
struct limit_above_now {
  explicit limit_above_now(std::size_t bytes) {
    set_host_memory_limit(host_memory_reserved() + bytes);
  }
  ~limit_above_now() { set_host_memory_limit(0); }
};

/// The limit of the groups that a folder describes.
std::string limit_of(const temporary_folder& root, const std::string& groups) {
  const auto limit = control_group_limit(groups, root.path().string());
  return limit == SIZE_MAX ? "none" : std::to_string(limit);
}

void write_limit(const temporary_folder& root, const std::string& folder,
                 const std::string& name, const std::string& text) {
  std::filesystem::create_directories(root / folder);
  write_bytes(root / (folder + "/" + name), text);
}

} // namespace

TEST_CASE("what arenas take from the system is counted and given back") {
  const auto before = host_memory_reserved();
  {
    arena memory{make_host_memory_source()};
    std::vector<buffer> held;
    for (auto bytes : {kib, 700 * kib, 3 * mib, 20 * kib, 5 * mib, 10 * kib})
      held.push_back(memory.allocate(bytes));
    CHECK(host_memory_reserved() - before >= memory.reserved_bytes());
    held.erase(held.begin(), held.begin() + 3);
    memory.trim();
    CHECK(host_memory_reserved() - before >= memory.live_bytes());
  }
  CHECK(host_memory_reserved() == before);
}

TEST_CASE("arenas stay below the limit together, and go on behind it") {
  const limit_above_now limit{64 * mib};
  arena one{make_host_memory_source()}, two{make_host_memory_source()};
  auto held = one.allocate(40 * mib);
  const auto e = caught([&] { two.allocate(40 * mib); });
  CHECK(e.code() == errc::out_of_memory);
  CHECK(says(e, "no memory for 41943040 bytes"));
  CHECK(says(e, "the limit is " + std::to_string(host_memory_limit())));
  CHECK(two.allocate(10 * mib));
  held.reset();
  one.trim();
  CHECK(two.allocate(40 * mib));
}

TEST_CASE("small blocks count, too") {
  const limit_above_now limit{8 * mib};
  arena memory{make_host_memory_source()};
  std::vector<buffer> held;
  const auto e = caught([&] {
    for (int i = 0; i < 10'000; ++i)
      held.push_back(memory.allocate(4 * kib));
  });
  CHECK(e.code() == errc::out_of_memory);
  CHECK(memory.live_bytes() <= 8 * mib);
}

TEST_CASE("a tensor that no machine has memory for is an error with its name") {
  const auto cpu = make_cpu_device(0);
  attribute_map attributes;
  attributes.set("shape", std::vector<std::int64_t>{std::int64_t{1} << 40});
  attributes.set("value", 1.0f);
  variable out;
  const argument_list outputs{{"Out", "huge", &out}};
  const step_info step;
  kernel_context ctx{*cpu, nullptr, attributes, {}, outputs, step};
  const auto fill =
    cpu_kernels().make("fill_constant", device_kind::cpu, attributes);
  const auto e = caught([&] { fill->run(ctx); });
  CHECK(e.code() == errc::out_of_memory);
  CHECK(e.where().variable == "huge");
  CHECK(says(e, "4398046511104 bytes"));
}

TEST_CASE("the default is at most what the machine has") {
  CHECK(host_memory_limit() > 0);
  CHECK(host_memory_limit() < std::size_t{1} << 60);
}

TEST_CASE("the least limit of a control group and those around it counts") {
  const temporary_folder root;
  CHECK(limit_of(root, "0::/a/b\n") == "none");
  write_limit(root, "a/b", "memory.max", "max\n");
  CHECK(limit_of(root, "0::/a/b\n") == "none");
  write_limit(root, "a/b", "memory.max", "5000\n");
  write_limit(root, "a", "memory.max", "3000\n");
  CHECK(limit_of(root, "0::/a/b\n") == "3000");
  CHECK(limit_of(root, "0::/a\n1:cpu:/a\n") == "3000");
  CHECK(limit_of(root, "0::/not/here\n") == "none");
  write_limit(root, ".", "memory.max", "7000\n");
  CHECK(limit_of(root, "0::/not/here\n") == "7000"); // seen from a container
  CHECK(limit_of(root, "0::/\n") == "7000");
}

TEST_CASE("control groups of version 1 are found by their controller") {
  const temporary_folder root;
  write_limit(root, "memory/a", "memory.limit_in_bytes", "4000\n");
  CHECK(limit_of(root, "3:cpu,cpuacct:/a\n") == "none");
  CHECK(limit_of(root, "3:cpu:/a\n4:memory:/a\n") == "4000");
  CHECK(limit_of(root, "4:hugetlb,memory:/a/b\n") == "4000");
  CHECK(limit_of(root, "no colon\n:\n") == "none");
}

} // TEST_SUITE("kernels.memory_limit")
