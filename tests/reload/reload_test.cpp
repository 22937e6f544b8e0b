// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <dlfcn.h>
#include <malloc.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <thread>

TEST_SUITE("reload") {

namespace {

namespace fs = std::filesystem;

std::size_t count_of(const char* folder) {
  return static_cast<std::size_t>(
    std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// What the process has.
struct holdings {
  std::size_t threads = count_of("/proc/self/task");
  std::size_t descriptors = count_of("/proc/self/fd");
  std::size_t heap = mallinfo2().uordblks;

  /// True if this is not more than `before`, but for what allocators keep.
  bool is_flat_since(const holdings& before) const {
    constexpr std::size_t kept = 64 * 1024;
    return threads <= before.threads && descriptors <= before.descriptors
           && heap <= before.heap + kept;
  }
};

/// A thread that was joined can be seen for a moment.
bool becomes_flat_since(const holdings& before) {
  using clock = std::chrono::steady_clock;
  const auto give_up = clock::now() + std::chrono::seconds{20};
  while (!holdings{}.is_flat_since(before)) {
    if (clock::now() > give_up)
      return false;
    std::this_thread::yield();
  }
  return true;
}

void load_and_train() {
  auto* const module = dlopen(RELOAD_MODULE, RTLD_NOW | RTLD_LOCAL);
  REQUIRE_MESSAGE(module, dlerror());
  const auto train =
    reinterpret_cast<bool (*)()>(dlsym(module, "train_a_little"));
  REQUIRE(static_cast<bool>(train));
  CHECK(train());
  dlclose(module);
}

} // namespace

TEST_CASE("a module that is loaded, used and unloaded 100 times leaves nothing "
          "from the third time on") {
  for (int i = 0; i < 3; ++i)
    load_and_train();
  const holdings before;
  for (int i = 3; i < 100; ++i)
    load_and_train();
  CHECK(becomes_flat_since(before));
}

} // TEST_SUITE("reload")
