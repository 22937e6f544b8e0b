// SPDX-License-Identifier: Apache-2.0

// Runs over a network that loses, doubles, reorders and delays packets, is
// slow, or stops in one or both directions. Hosts are namespaces of the test's
// own; control goes over TLS, sums over Gloo. In a long run, there are many
// more seeds, and lines that say how long it took until a loss was named.

#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/step_watchdog.hpp>
#include <troupe/base/random.hpp>
#include <troupe/comm/engine/join.hpp>

#include <actors/remote/job_files.hpp>
#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>
#include <support/bad_network.hpp>
#include <support/caught.hpp>
#include <support/long_run.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;
using namespace std::chrono_literals;

TEST_SUITE("actors.remote.bad_network") {

namespace {

constexpr std::uint16_t port = 4711; // in namespaces of the test's own
constexpr std::size_t hosts = 2;

bool can_have_hosts() {
  if (bad_network::is_possible() && comm::gloo_support().is_built)
    return true;
  skip_case("needs Gloo, /dev/net/tun and the right to make networks");
  return false;
}

std::uint64_t seeds_of_run(std::uint64_t in_short, std::uint64_t in_long) {
  return is_long_run() ? in_long : in_short;
}

/// A pipe that tells what processes have done.
struct telling_pipe {
  telling_pipe() { REQUIRE(::pipe(ends.data()) == 0); }
  ~telling_pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  telling_pipe(const telling_pipe&) = delete;
  telling_pipe& operator=(const telling_pipe&) = delete;
  void tell() const { (void)!::write(ends[1], "s", 1); }

  std::array<int, 2> ends{};
};

/// The options of a process that moves to its host.
node_options on_host(node_options node, const bad_network& network,
                     const job_files& files) {
  network.enter(node.process);
  node.host = bad_network::address_of(0);
  node.port = port;
  node.network = host_network{files.path(), true};
  return node;
}

/// Losses and parameters of some steps, bit by bit.
/// @param begun is told when the first step has ended
std::string train(const small_net& net, executor_options options,
                  std::size_t steps, const telling_pipe* begun = nullptr) {
  options.parameters = net.parameters();
  options.lowering.share_parameters = options.lowering.gather_products = false;
  executor exe{net.main, options};
  std::vector<double> numbers;
  for (std::size_t s = 0; s < steps; ++s) {
    numbers.push_back(exe.run(exe.own_share(net.batch(s, 6))).loss);
    if (s == 0 && begun)
      begun->tell();
  }
  exe.synchronize_parameters();
  for (auto v : values_of(exe.parameters()))
    numbers.push_back(v);
  return bits_of(numbers);
}

/// Trains on both hosts, and in one process. All must have the same bits.
/// Returns what happened to packets.
/// @param disturb is called when all have done a step
network_counts
check_bits(std::size_t steps, const network_faults& faults, std::uint64_t seed,
           const std::function<void(bad_network&)>& disturb = {}) {
  CAPTURE(seed);
  const auto net = make_mlp();
  const auto options = options_over(hosts, merge_strategy::all_reduce);
  const auto expected = train(net, options, steps);
  const job_files files(hosts);
  bad_network network(hosts, seed);
  network.set(faults);
  const telling_pipe begun;
  process_group run{hosts, [&](node_options node) {
                      auto own = options;
                      own.nodes = on_host(std::move(node), network, files);
                      return train(net, own, steps, &begun);
                    }};
  if (disturb) {
    wait_for_bytes(begun.ends[0], hosts);
    disturb(network);
  }
  for (std::size_t p = 0; p < hosts; ++p)
    CHECK(run.wait(p, 100s).last_word == expected);
  return network.counts();
}

/// Faults that the seed chooses.
network_faults faults_of(std::uint64_t seed) {
  splitmix64 draw{seed};
  const auto up_to = [&](std::uint64_t most) {
    return static_cast<unsigned>(draw.below(most + 1));
  };
  return {.lost = up_to(2),
          .doubled = up_to(5),
          .late = up_to(10),
          .delay_ms = up_to(3),
          .rate = up_to(1) * std::uint64_t{2'000'000}};
}

/// Stops the ways between the hosts one after the other, and lets them go on.
void stop_and_go(bad_network& network, std::uint64_t seed, int rounds) {
  splitmix64 draw{seed};
  const auto pause = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{draw.below(30)});
  };
  for (int r = 0; r < rounds; ++r) {
    const auto first = draw.below(hosts);
    network.close(first, 1 - first);
    pause();
    if (draw.below(2) == 0)
      network.close(1 - first, first);
    pause();
    network.open();
    pause();
  }
}

/// A run whose processes take this long to be silent for lost, and that has
/// done a step.
struct running {
  explicit running(int silence_limit_ms)
    : limit_ms(silence_limit_ms), files(hosts), network(hosts, 1) {
    processes.emplace(hosts, [this](node_options node) {
      node = on_host(std::move(node), network, files);
      node.silence_limit_ms = limit_ms;
      return train_for_ever(std::move(node));
    });
    wait_for_bytes(begun.ends[0], hosts);
  }
  /// A byte for each step of each process.
  std::string train_for_ever(node_options node) const {
    const auto net = make_mlp();
    auto options = options_over(hosts, merge_strategy::all_reduce);
    options.parameters = net.parameters();
    options.nodes = std::move(node);
    executor exe{net.main, options};
    try {
      for (;; std::this_thread::sleep_for(1ms)) { // the pipe has an end
        exe.run(exe.own_share(net.batch(0, 6)));
        begun.tell();
      }
    } catch (const error&) {
      failed.tell();
      throw;
    }
  }
  /// The network stops. Each process ends, and names the other one.
  void check_both_end(const std::function<void(bad_network&)>& stop) {
    const auto start = std::chrono::steady_clock::now();
    stop(network);
    wait_for_bytes(failed.ends[0], hosts);
    const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
    for (std::size_t p = 0; p < hosts; ++p) {
      const auto end = processes->wait(p);
      CHECK(end.exited);
      CAPTURE(end.last_word);
      CHECK(contains(end.last_word,
                     "process " + std::to_string(1 - p) + " is lost"));
    }
    if (is_long_run())
      std::printf("all have named a loss after %.2f s; the limit is %.2f s\n",
                  took.count(), limit_ms / 1000.0);
  }

  int limit_ms;
  job_files files;
  bad_network network;
  telling_pipe begun, failed;
  std::optional<process_group> processes; // goes first
};

/// What a watchdog tells of three steps over a network that becomes slow after
/// the first one.
std::string told_in_slow_steps(const small_net& net, node_options node,
                               const telling_pipe& begun,
                               const telling_pipe& slowed) {
  auto options = options_over(hosts, merge_strategy::all_reduce);
  options.parameters = net.parameters();
  const auto rank = node.process;
  options.nodes = std::move(node);
  executor exe{net.main, options};
  const auto step = [&] { exe.run(exe.own_share(net.batch(0, 6))); };
  step();
  begun.tell();
  wait_for_bytes(slowed.ends[0], 1);
  std::string told;
  {
    const step_watchdog dog{
      exe,
      100ms,
      [&](const std::string& text) { told += text + '\n'; },
      {.rank = rank}};
    for (int i = 0; i < 3; ++i)
      step();
  }
  return told;
}

/// Limits of the runs that lose their network.
std::vector<int> limits_ms() {
  std::vector<int> all{1000};
  if (is_long_run())
    all.insert(all.end(), {1000, 1000, 1000, 1000, 5000});
  return all;
}

} // namespace

TEST_CASE("lost, doubled and late packets change nothing") {
  if (!can_have_hosts())
    return;
  network_counts all;
  for (std::uint64_t seed = 1; seed <= seeds_of_run(3, 20); ++seed) {
    const auto counts =
      check_bits(12, {.lost = 1, .doubled = 2, .late = 5, .delay_ms = 1}, seed);
    all.lost += counts.lost;
    all.doubled += counts.doubled;
    all.late += counts.late;
  }
  CHECK(all.lost > 3);
  CHECK(all.doubled > 5);
  CHECK(all.late > 10);
  for (std::uint64_t seed = 1; seed <= seeds_of_run(0, 100); ++seed)
    check_bits(6, faults_of(seed), seed);
}

TEST_CASE("a network with long ways only takes its time") {
  if (!can_have_hosts())
    return;
  check_bits(5, {.delay_ms = is_long_run() ? 200u : 50u}, 1);
}

TEST_CASE("a link of a megabit per second is slow, and nobody is lost") {
  if (!can_have_hosts())
    return;
  const auto begin = std::chrono::steady_clock::now();
  const auto counts = check_bits(6, {.rate = 1'000'000 / 8}, 1);
  const std::chrono::duration<double> took =
    std::chrono::steady_clock::now() - begin;
  CHECK(took.count() > double(counts.bytes) / 125'000);
  CHECK(counts.bytes > 50'000);
}

TEST_CASE("a watchdog calls a slow link by its name") {
  if (!can_have_hosts())
    return;
  const auto net = make_wide_mlp();
  const job_files files(hosts);
  bad_network network(hosts, 1);
  const telling_pipe begun, slowed;
  process_group run{hosts, [&](node_options node) {
                      return told_in_slow_steps(
                        net, on_host(std::move(node), network, files), begun,
                        slowed);
                    }};
  wait_for_bytes(begun.ends[0], hosts);
  network.set({.rate = 500'000});
  slowed.tell();
  slowed.tell();
  for (std::size_t p = 0; p < hosts; ++p) {
    const auto told = run.wait(p, 100s).last_word;
    CAPTURE(p);
    CAPTURE(told);
    CHECK(contains(told, "slow link: "));
    const auto own = std::to_string(p), other = std::to_string(1 - p);
    CHECK((contains(told, " over gloo, rank " + own + " -> rank " + other)
           || contains(told, " over gloo, rank " + other + " -> rank " + own)));
    CHECK(contains(told, " are under way, "));
  }
}

TEST_CASE("ways that stop and go on change nothing") {
  if (!can_have_hosts())
    return;
  for (std::uint64_t seed = 1; seed <= seeds_of_run(1, 30); ++seed)
    check_bits(40, {.delay_ms = 1}, seed, [&](bad_network& network) {
      stop_and_go(network, seed, is_long_run() ? 20 : 4);
    });
}

TEST_CASE("a network that stops in both directions ends the run") {
  if (!can_have_hosts())
    return;
  for (const int limit : limits_ms())
    running{limit}.check_both_end([](bad_network& network) {
      network.close(0, 1);
      network.close(1, 0);
    });
}

TEST_CASE("a network that stops in one direction ends the run") {
  if (!can_have_hosts())
    return;
  for (const int limit : limits_ms())
    for (const std::size_t from : {0, 1}) {
      CAPTURE(from);
      running{limit}.check_both_end(
        [from](bad_network& network) { network.close(from, 1 - from); });
    }
}

TEST_CASE("a network that stops for half of the limit does not matter") {
  if (!can_have_hosts())
    return;
  running run{20'000}; // TCP itself may wait for a second or two
  run.network.close(0, 1);
  run.network.close(1, 0);
  std::this_thread::sleep_for(is_long_run() ? 10s : 1s);
  std::array<char, 4096> steps{}; // of before
  ::fcntl(run.begun.ends[0], F_SETFL, O_NONBLOCK);
  while (::read(run.begun.ends[0], steps.data(), steps.size()) > 0)
    ;
  run.network.open();
  wait_for_bytes(run.begun.ends[0], 20); // it goes on
  run.processes->kill(0);
  CHECK(contains(run.processes->wait(1).last_word, "process 0 is lost"));
}

} // TEST_SUITE("actors.remote.bad_network")
