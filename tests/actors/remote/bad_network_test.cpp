// SPDX-License-Identifier: Apache-2.0

// Runs over a network that loses, doubles, reorders and delays packets, is
// slow, or stops in one or both directions. Hosts are namespaces of the test's
// own; control goes over TLS, sums over Gloo.

#include <troupe/actors/executor.hpp>
#include <troupe/comm/engine/join.hpp>

#include <actors/remote/job_files.hpp>
#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>
#include <support/bad_network.hpp>
#include <support/caught.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
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
std::string train(const small_net& net, executor_options options,
                  std::size_t steps) {
  options.parameters = net.parameters();
  options.lowering.share_parameters = options.lowering.gather_products = false;
  executor exe{net.main, options};
  std::vector<double> numbers;
  for (std::size_t s = 0; s < steps; ++s)
    numbers.push_back(exe.run(exe.own_share(net.batch(s, 6))).loss);
  exe.synchronize_parameters();
  for (auto v : values_of(exe.parameters()))
    numbers.push_back(v);
  return bits_of(numbers);
}

/// Trains on both hosts, and in one process. All must have the same bits.
/// Returns what happened to packets.
network_counts check_bits(std::size_t steps, const network_faults& faults,
                          std::uint64_t seed) {
  CAPTURE(seed);
  const auto net = make_mlp();
  const auto options = options_over(hosts, merge_strategy::all_reduce);
  const auto expected = train(net, options, steps);
  const job_files files(hosts);
  bad_network network(hosts, seed);
  network.set(faults);
  process_group run{hosts, [&](node_options node) {
                      auto own = options;
                      own.nodes = on_host(std::move(node), network, files);
                      return train(net, own, steps);
                    }};
  for (std::size_t p = 0; p < hosts; ++p)
    CHECK(run.wait(p, 100s).last_word == expected);
  return network.counts();
}

/// A run whose processes take this long to be silent for lost, and that has
/// done a step.
struct running {
  explicit running(int silence_limit_ms) : files(hosts), network(hosts, 1) {
    REQUIRE(::pipe(begun.data()) == 0);
    processes.emplace(hosts, [this, silence_limit_ms](node_options node) {
      node = on_host(std::move(node), network, files);
      node.silence_limit_ms = silence_limit_ms;
      return train_for_ever(std::move(node));
    });
    wait_for_bytes(begun[0], hosts);
  }
  /// A byte for each step of each process.
  std::string train_for_ever(node_options node) const {
    const auto net = make_mlp();
    auto options = options_over(hosts, merge_strategy::all_reduce);
    options.parameters = net.parameters();
    options.nodes = std::move(node);
    executor exe{net.main, options};
    for (;; std::this_thread::sleep_for(1ms)) { // the pipe has an end
      exe.run(exe.own_share(net.batch(0, 6)));
      (void)!::write(begun[1], "s", 1);
    }
  }
  ~running() {
    processes.reset();
    ::close(begun[0]);
    ::close(begun[1]);
  }
  /// Each process ends, and names the other one.
  void check_both_end() {
    for (std::size_t p = 0; p < hosts; ++p) {
      const auto end = processes->wait(p);
      CHECK(end.exited);
      CAPTURE(end.last_word);
      CHECK(contains(end.last_word,
                     "process " + std::to_string(1 - p) + " is lost"));
    }
  }

  job_files files;
  bad_network network;
  std::array<int, 2> begun{};
  std::optional<process_group> processes;
};

} // namespace

TEST_CASE("lost, doubled and late packets change nothing") {
  if (!can_have_hosts())
    return;
  network_counts all;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto counts =
      check_bits(12, {.lost = 1, .doubled = 2, .late = 5, .delay_ms = 1}, seed);
    all.lost += counts.lost;
    all.doubled += counts.doubled;
    all.late += counts.late;
  }
  CHECK(all.lost > 3);
  CHECK(all.doubled > 5);
  CHECK(all.late > 10);
}

TEST_CASE("a network with long ways only takes its time") {
  if (!can_have_hosts())
    return;
  check_bits(5, {.delay_ms = 50}, 1);
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

TEST_CASE("a network that stops in both directions ends the run") {
  if (!can_have_hosts())
    return;
  running run{1000};
  run.network.close(0, 1);
  run.network.close(1, 0);
  run.check_both_end();
}

TEST_CASE("a network that stops in one direction ends the run") {
  if (!can_have_hosts())
    return;
  for (const std::size_t from : {0, 1}) {
    CAPTURE(from);
    running run{1000};
    run.network.close(from, 1 - from);
    run.check_both_end();
  }
}

TEST_CASE("a network that stops for half of the limit does not matter") {
  if (!can_have_hosts())
    return;
  running run{20'000}; // TCP itself may wait for a second or two
  run.network.close(0, 1);
  run.network.close(1, 0);
  std::this_thread::sleep_for(2s);
  std::array<char, 4096> steps{}; // of before
  ::fcntl(run.begun[0], F_SETFL, O_NONBLOCK);
  while (::read(run.begun[0], steps.data(), steps.size()) > 0)
    ;
  run.network.open();
  wait_for_bytes(run.begun[0], 20); // it goes on
  run.processes->kill(0);
  CHECK(contains(run.processes->wait(1).last_word, "process 0 is lost"));
}

} // TEST_SUITE("actors.remote.bad_network")
