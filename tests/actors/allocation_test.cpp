// SPDX-License-Identifier: Apache-2.0
//
// Counts the heap allocations of a steady step. This executable replaces
// operator new. A case that fails lists the call stacks of the allocations.
#include <troupe/actors/backend/backend.hpp>
#include <troupe/actors/caf/inside.hpp>
#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <actors/small_nets.hpp>
#include <support/sleeping_threads.hpp>

#include "late_device.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <doctest/doctest.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;

namespace {

/// The call stack of an allocation.
struct call_stack {
  std::array<void*, 24> frames{};
  int count = 0;
};

constexpr std::size_t stacks_kept = 16;

std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations{0};
std::array<call_stack, stacks_kept> stacks;

[[gnu::noinline]] void count_one() {
  if (!counting.load(std::memory_order_relaxed))
    return;
  const auto number = allocations.fetch_add(1);
  if (number < stacks_kept) {
    auto& s = stacks[number];
    s.count = ::backtrace(s.frames.data(), static_cast<int>(s.frames.size()));
  }
}

/// The recorded call stacks, one frame per line. `c++filt` demangles the names.
std::string describe_stacks() {
  std::string text;
  const auto kept = std::min(allocations.load(), stacks_kept);
  for (std::size_t i = 0; i < kept; ++i) {
    const std::unique_ptr<char*, decltype(&std::free)> names{
      ::backtrace_symbols(stacks[i].frames.data(), stacks[i].count),
      &std::free};
    text += "allocation " + std::to_string(i) + "\n";
    for (int f = 2; names && f < stacks[i].count; ++f)
      text += "  " + std::string(names.get()[f]) + "\n";
  }
  return text;
}

void* take(std::size_t bytes) {
  count_one();
  if (void* taken = std::malloc(bytes > 0 ? bytes : 1))
    return taken;
  throw std::bad_alloc{};
}

void* take_aligned(std::size_t bytes, std::align_val_t alignment) {
  count_one();
  const auto to = static_cast<std::size_t>(alignment);
  if (void* taken = std::aligned_alloc(to, (bytes + to - 1) / to * to))
    return taken;
  throw std::bad_alloc{};
}

/// Returns when all workers of `sys` have started: each one runs an actor that
/// waits for the others. A thread allocates memory when it starts, and a worker
/// that no step needs may start late.
void meet_workers(caf::actor_system& sys, std::size_t workers) {
  std::atomic<std::size_t> here{0};
  for (std::size_t i = 0; i < workers; ++i)
    sys.spawn([&here, workers](caf::event_based_actor*) {
      ++here;
      while (here < workers)
        std::this_thread::yield();
    });
  sys.await_all_actors_done();
}

/// Counts the allocations of `steps`.
template <class Steps>
std::size_t count_in(Steps steps) {
  allocations = 0;
  counting = true;
  steps();
  counting = false;
  return allocations;
}

/// Devices whose arenas have more small blocks of each size than a small net
/// uses at once. An order of ops that first occurs late then needs no new
/// block.
std::vector<std::shared_ptr<device>>
devices_with_blocks(const std::vector<device_id>& ids) {
  constexpr std::size_t blocks_per_size = 100;
  auto made = make_devices(ids);
  for (auto& d : made) {
    std::vector<buffer> held;
    for (std::size_t bytes = 1; bytes <= largest_fixed_block;) {
      for (std::size_t i = 0; i < blocks_per_size; ++i)
        held.push_back(d->memory().allocate(bytes));
      bytes = held.back().capacity() + 1;
    }
  }
  return made;
}

constexpr int counted_steps = 40;

/// Counts the allocations of `counted_steps` steps, with as many steps in
/// flight as the options allow. Earlier steps have allocated the memory that is
/// kept.
std::size_t in_steady_steps(const small_net& net, executor_options options) {
  call_stack warm; // the first backtrace loads a library
  ::backtrace(warm.frames.data(), 1);
  caf::actor_system_config config;
  const auto owned = make_actor_system(config, options.threads);
  auto& system = *owned;
  meet_workers(system, actors::workers_of(system));
  wait_until_others_sleep(); // the actor system's timer may start late, too
  options.system = &system;
  options.parameters = net.parameters();
  if (options.hooks.device_instances.empty())
    options.hooks.device_instances = devices_with_blocks(options.devices);
  executor exe{net.main, options};
  const auto feeds = net.batch(1, 6);
  step_result result;
  step_id next = 0; // the next step to wait for
  const auto run_steps = [&](int count) {
    for (int s = 0; s < count; ++s)
      if (exe.submit(feeds) - next + 1 == options.steps_in_flight)
        exe.wait(next++, result);
  };
  run_steps(100);
  // The largest number of results that exist at once.
  const auto last = exe.submit(feeds);
  while (exe.stats().steps <= last)
    std::this_thread::yield();
  exe.wait(next++, result);
  const auto count = count_in([&] { run_steps(counted_steps); });
  while (next <= last + counted_steps)
    exe.wait(next++, result);
  return count;
}

} // namespace

void* operator new(std::size_t bytes) {
  return take(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take_aligned(bytes, alignment);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  count_one();
  return std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* taken) noexcept {
  std::free(taken);
}
void operator delete(void* taken, std::size_t) noexcept {
  std::free(taken);
}
void operator delete(void* taken, std::align_val_t) noexcept {
  std::free(taken);
}
void operator delete(void* taken, std::size_t, std::align_val_t) noexcept {
  std::free(taken);
}

TEST_SUITE("actors.allocation") {

TEST_CASE("a steady dry-run step allocates nothing between submit and wait") {
  for (auto make : {make_mlp, make_lenet, make_word2vec})
    for (const std::string devices : {"cpu", "cpu:2"})
      for (int threads : {1, 2})
        // 5: an op's counters need a second cache line
        for (std::uint32_t in_flight : {1u, 2u, 5u}) {
          const auto net = make();
          CAPTURE(net.name);
          CAPTURE(devices);
          CAPTURE(threads);
          CAPTURE(in_flight);
          executor_options options;
          options.devices = parse_devices(devices);
          options.threads = threads;
          options.steps_in_flight = in_flight;
          options.hooks.dry_run = true;
          const auto count = in_steady_steps(net, options);
          INFO(describe_stacks());
          CHECK(count == 0);
        }
}

TEST_CASE("a steady step of a multi-layer perceptron allocates nothing") {
  for (const std::string devices : {"cpu", "cpu:2"})
    for (std::uint32_t in_flight : {1u, 2u}) {
      CAPTURE(devices);
      CAPTURE(in_flight);
      executor_options options;
      options.devices = parse_devices(devices);
      options.steps_in_flight = in_flight;
      const auto count = in_steady_steps(make_mlp(), options);
      INFO(describe_stacks());
      CHECK(count == 0);
    }
}

// When a thread sums rows for the first time, it allocates memory and keeps it.
// That may happen late, but at most once per thread and weight matrix.
TEST_CASE("gathered gradients allocate at most once per thread and matrix") {
  using enum graph::merge_strategy;
  constexpr std::size_t matrices = 3;
  for (auto strategy : {all_reduce, reduce}) { // before or in the update
    executor_options options;
    options.devices = parse_devices("cpu:2");
    options.threads = 2;
    options.lowering.batch = 8;
    options.strategy = strategy;
    const auto count = in_steady_steps(make_wide_mlp(), options);
    const auto threads = static_cast<std::size_t>(options.threads) + 1;
    static_assert(counted_steps > 3 * matrices);
    INFO(describe_stacks());
    CHECK(count <= threads * matrices);
  }
}

TEST_CASE("a steady step allocates nothing while messages are recorded") {
  for (auto dry_run : {true, false})
    for (const std::string devices : {"cpu", "cpu:2"}) {
      CAPTURE(dry_run);
      CAPTURE(devices);
      executor_options options;
      options.devices = parse_devices(devices);
      options.hooks.dry_run = dry_run;
      options.hooks.trace = trace_level::messages;
      const auto count = in_steady_steps(make_mlp(), options);
      INFO(describe_stacks());
      CHECK(count == 0);
    }
}

TEST_CASE("late devices, ranks and places allocate nothing in a steady step") {
  struct way_to_run {
    std::string name;
    std::function<void(executor_hooks&)> set;
    bool dry_run = true;
  };
  const auto late = [](executor_hooks& hooks) {
    for (int d = 0; d < 2; ++d)
      hooks.device_instances.push_back(make_late_device(d, 1, 20));
  };
  const auto ranks = [](executor_hooks& hooks) {
    hooks.rank_collectives = true;
  };
  const auto places = [](executor_hooks& hooks) { hooks.places = {0, 1}; };
  // Outside dry runs, a simulated device allocates a record for each copy, and
  // places send values as strings.
  for (auto& way :
       {way_to_run{"late", late}, way_to_run{"places", places},
        way_to_run{"ranks", ranks}, way_to_run{"ranks", ranks, false}})
    for (std::uint32_t in_flight : {1u, 2u}) {
      CAPTURE(way.name);
      CAPTURE(way.dry_run);
      CAPTURE(in_flight);
      executor_options options;
      options.devices = parse_devices("cpu:2");
      options.threads = 2;
      options.steps_in_flight = in_flight;
      options.lowering.gather_products = options.lowering.share_parameters =
        options.lowering.merge_in_updates = false;
      options.hooks.dry_run = way.dry_run;
      options.hooks.trace = trace_level::messages;
      way.set(options.hooks);
      const auto count = in_steady_steps(make_mlp(), options);
      INFO(describe_stacks());
      CHECK(count == 0);
    }
}

TEST_CASE("a step's allocations are counted and their call stacks recorded") {
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.hooks.form = edge_form::message; // a CAF message is an allocation
  options.hooks.dry_run = true;
  CHECK(in_steady_steps(make_mlp(), options) > 0);
  CHECK(describe_stacks() != "");
}

} // TEST_SUITE("actors.allocation")
