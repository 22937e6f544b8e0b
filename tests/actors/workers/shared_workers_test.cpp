// SPDX-License-Identifier: Apache-2.0
//
// Several executors in one actor system: none starves, and none is delayed by
// another while a worker is idle. No test measures time.
#include <troupe/actors/configure.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/base/cores.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <actors/application.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;

TEST_SUITE("actors.shared_workers") {

namespace {

constexpr std::chrono::seconds patience{30};

/// A door that opens once.
class gate {
public:
  void open() {
    std::lock_guard guard{mutex_};
    open_ = true;
    opened_.notify_all();
  }
  /// False if it took too long.
  bool wait() {
    std::unique_lock guard{mutex_};
    return opened_.wait_for(guard, patience, [this] { return open_; });
  }

private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

/// An actor system that the executors of a test share.
struct shared_system {
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;

  shared_system(bool troupe_policy, int threads) {
    system =
      troupe_policy
        ? make_actor_system(config, threads)
        : test::make_plain_system(config, static_cast<std::size_t>(threads));
  }
};

/// What an op does: called with its number in the program.
using body = std::function<void(std::size_t)>;

class body_kernel final : public kernel {
public:
  body_kernel(body run, std::size_t number)
    : run_(std::move(run)), number_(number) {}
  void run(kernel_context&) override { run_(number_); }

private:
  body run_;
  std::size_t number_;
};

/// `chains` independent chains of `length` ops, numbered chain by chain.
graph::program make_chains(std::size_t chains, std::size_t length) {
  graph::program p;
  for (std::size_t n = 0; n < chains * length; ++n) {
    graph::var_desc output;
    output.name = "v" + std::to_string(n);
    p.main().add_var(std::move(output));
    graph::op_desc op;
    op.type = "body";
    if (n % length != 0)
      op.set_input("X", {"v" + std::to_string(n - 1)});
    op.set_output("Out", {"v" + std::to_string(n)});
    op.attributes.set("number", static_cast<std::int64_t>(n));
    p.main().ops.push_back(std::move(op));
  }
  return p;
}

std::unique_ptr<executor> make_executor(const graph::program& p, body run,
                                        shared_system& in,
                                        std::uint32_t in_flight = 1,
                                        const std::string& devices = "cpu") {
  auto kernels = std::make_shared<kernel_table>();
  kernels->add("body", device_kind::cpu,
               [run = std::move(run)](const attribute_map& attributes) {
                 return std::make_unique<body_kernel>(
                   run,
                   static_cast<std::size_t>(attributes.get_int("number", 0)));
               });
  executor_options o;
  o.devices = parse_devices(devices);
  o.kernels = std::move(kernels);
  o.steps_in_flight = in_flight;
  o.system = in.system.get();
  return std::make_unique<executor>(p, o);
}

/// The work of each executor in a test of fairness.
struct load {
  std::size_t executors;
  std::size_t chains;
  std::size_t length;
  std::uint32_t steps; ///< all in flight at once

  std::uint64_t ops() const { return chains * length * steps; }
};

/// Submits equal loads to several executors that share `workers` workers. One
/// worker serves all executors, the others are kept busy. Returns how many ops
/// each executor had run when the first one was done.
std::vector<std::uint64_t> ops_when_first_is_done(std::size_t workers,
                                                  const load& each) {
  shared_system shared{true, static_cast<int>(workers)};
  gate start, finish;
  std::atomic<std::size_t> waiting{0};
  auto blocker = make_executor(
    make_chains(workers, 1),
    [&](std::size_t number) {
      ++waiting;
      (number == 0 ? start : finish).wait();
    },
    shared);
  std::vector<std::atomic<std::uint64_t>> ran(each.executors);
  std::vector<std::uint64_t> seen;
  std::once_flag first;
  std::vector<std::unique_ptr<executor>> exes;
  for (std::size_t e = 0; e < each.executors; ++e)
    exes.push_back(make_executor(
      make_chains(each.chains, each.length),
      [&, e](std::size_t) {
        if (ran[e].fetch_add(1) + 1 == each.ops())
          std::call_once(first, [&] { seen.assign(ran.begin(), ran.end()); });
      },
      shared, each.steps));
  const auto blocked = blocker->submit({});
  while (waiting < workers)
    std::this_thread::yield();
  for (auto& e : exes)
    for (std::uint32_t s = 0; s < each.steps; ++s)
      e->submit({});
  start.open();
  for (auto& e : exes)
    for (step_id s = 0; s < each.steps; ++s)
      e->wait(s);
  finish.open();
  blocker->wait(blocked);
  return seen;
}

/// The fraction of its ops that the slowest executor had run when the first one
/// was done.
double least_share(std::size_t workers, const load& each) {
  const auto ops = ops_when_first_is_done(workers, each);
  REQUIRE(ops.size() == each.executors);
  return static_cast<double>(*std::ranges::min_element(ops))
         / static_cast<double>(each.ops());
}

/// No executor may be far behind the first one. Checks the median of five runs,
/// because workers take turns among ready jobs, and one executor may happen to
/// have twice as many as another.
void check_fair(std::size_t workers, const load& each) {
  std::array<double, 5> shares{};
  for (auto& share : shares)
    share = least_share(workers, each);
  std::ranges::sort(shares);
  CHECK(shares[2] >= 0.5);
}

void check_fair(std::size_t workers) {
  for (std::size_t executors : {2u, 5u})
    for (std::size_t chains : {1u, 4u}) {
      CAPTURE(executors);
      CAPTURE(chains);
      check_fair(workers, {executors, chains, 20, 100}); // many short steps
      check_fair(workers, {executors, chains, 600, 3});  // few long steps
    }
}

} // namespace

TEST_CASE("executors with serial streams share a worker fairly") {
  check_fair(1);
}

TEST_CASE("executors with wide streams share a worker fairly") {
  if (usable_cores() < 2)
    return test::skip_case("needs two cores");
  check_fair(2);
}

TEST_CASE("a long op does not delay another executor if a worker is idle") {
  if (usable_cores() < 2)
    return test::skip_case("needs two cores");
  for (bool policy : {true, false})
    for (const std::string devices : {"cpu", "cpu:2"}) {
      CAPTURE(policy);
      CAPTURE(devices);
      shared_system shared{policy, 2};
      gate other_is_done;
      std::atomic<bool> in_time{false}, begun{false};
      // Its first step ends when ten steps of the other one have ended.
      auto slow = make_executor(
        make_chains(1, 3),
        [&](std::size_t number) {
          if (number != 1)
            return;
          begun = true;
          in_time = other_is_done.wait();
        },
        shared);
      std::atomic<int> ran{0};
      auto fast = make_executor(
        make_chains(3, 4), [&](std::size_t) { ++ran; }, shared, 2, devices);
      const auto step = slow->submit({});
      // In a system with CAF's own policy, the waiting thread is a worker too.
      for (int s = 0; s < 10; ++s)
        fast->run({});
      other_is_done.open();
      slow->wait(step);
      CHECK(begun);
      CHECK(in_time);
      CHECK(ran == 10 * 12 * static_cast<int>(parse_devices(devices).size()));
    }
}

TEST_CASE("ops may wait for answers from an actor of the application") {
  if (usable_cores() < 2)
    return test::skip_case("needs two cores");
  for (bool policy : {true, false}) {
    CAPTURE(policy);
    shared_system shared{policy, 2};
    const auto counter =
      shared.system->spawn([](caf::event_based_actor*) -> caf::behavior {
        auto asked = std::make_shared<int>(0);
        return {[asked](int) { return ++*asked; }};
      });
    std::atomic<int> answers{0};
    auto exe = make_executor(
      make_chains(1, 10),
      [&](std::size_t) {
        caf::scoped_actor self{*shared.system};
        self->request(counter, patience, 1)
          .receive([&](int) { ++answers; }, [](const caf::error&) {});
      },
      shared);
    for (int s = 0; s < 10; ++s)
      exe->run({});
    CHECK(answers == 100);
  }
}

TEST_CASE("an application's actor is not starved by endless ready ops") {
  shared_system shared{true, 1};
  const auto doubling =
    shared.system->spawn([](caf::event_based_actor*) -> caf::behavior {
      return {[](int x) { return 2 * x; }};
    });
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> ran{0};
  auto exe = make_executor(
    make_chains(4, 50), [&](std::size_t) { ++ran; }, shared, 50);
  std::thread steps([&] {
    for (step_id s = 0; !stop; ++s)
      exe->wait(exe->submit({}));
  });
  while (ran == 0)
    std::this_thread::yield();
  caf::scoped_actor self{*shared.system};
  int right = 0;
  for (int i = 0; i < 100; ++i)
    self->request(doubling, patience, i)
      .receive([&](int y) { right += y == 2 * i; }, [](const caf::error&) {});
  stop = true;
  steps.join();
  CHECK(right == 100);
}

TEST_CASE("long ops of several executors leave a worker for other actors") {
  shared_system shared{false, 2};
  const auto doubling =
    shared.system->spawn([](caf::event_based_actor*) -> caf::behavior {
      return {[](int x) { return 2 * x; }};
    });
  gate answered;
  std::atomic<bool> in_time{true};
  std::vector<std::unique_ptr<executor>> exes;
  for (int e = 0; e < 3; ++e)
    exes.push_back(make_executor(
      make_chains(1, 1),
      [&](std::size_t) {
        if (!answered.wait())
          in_time = false;
      },
      shared));
  for (auto& e : exes)
    e->submit({});
  caf::scoped_actor self{*shared.system};
  for (int i = 0; i < 10; ++i)
    self->request(doubling, patience, i)
      .receive([&](int y) { CHECK(y == 2 * i); },
               [](const caf::error&) { FAIL("no answer"); });
  answered.open();
  for (auto& e : exes)
    e->wait(0);
  CHECK(in_time);
}

} // TEST_SUITE("actors.shared_workers")
