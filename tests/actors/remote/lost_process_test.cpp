// SPDX-License-Identifier: Apache-2.0

// Runs over several processes of which one is killed, leaves, or never joins.
// Each of the others soon ends with one error that names it.

#include <troupe/actors/executor.hpp>
#include <troupe/base/random.hpp>

#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.lost_process") {

namespace {

constexpr graph::merge_strategy strategies[] = {
  graph::merge_strategy::all_reduce, graph::merge_strategy::reduce,
  graph::merge_strategy::replicate};

/// How often each process is killed under each strategy. TROUPE_TEST_KILLS sets
/// it for a long run.
int kills() {
  const auto* given = std::getenv("TROUPE_TEST_KILLS");
  return given ? std::atoi(given) : 1;
}

/// The time in which each of the others must end. TROUPE_TEST_PATIENCE sets it
/// in seconds.
std::chrono::seconds seconds_left() {
  const auto* given = std::getenv("TROUPE_TEST_PATIENCE");
  return std::chrono::seconds{given ? std::atoi(given) : 30};
}

bool names(const std::string& text, std::size_t process) {
  return text.find("process " + std::to_string(process)) != std::string::npos;
}

using pipe_ends = std::array<int, 2>;

/// As `train_on`, with steps that overlap.
std::string train_overlapped(const small_net& net, executor_options options,
                             node_options node, int begun) {
  options.parameters = net.parameters();
  options.nodes = std::move(node);
  executor exe{net.main, options};
  auto last = exe.submit(exe.own_share(net.batch(0, 7)));
  for (bool first = true;; first = false) {
    const auto next = exe.submit(exe.own_share(net.batch(0, 7)));
    exe.wait(last);
    last = next;
    if (first)
      (void)!::write(begun, "b", 1);
  }
}

void all_have_begun(const pipe_ends& begun, std::size_t processes) {
  for (std::size_t p = 0; p < processes; ++p) {
    pollfd one{begun[0], POLLIN, 0};
    char byte = 0;
    REQUIRE(::poll(&one, 1, 30000) == 1);
    REQUIRE(::read(begun[0], &byte, 1) == 1);
  }
}

/// Runs processes, kills `victim` after some steps, and checks how the others
/// end.
void survives(const small_net& net, std::size_t processes, std::size_t victim,
              graph::merge_strategy strategy, std::uint64_t seed) {
  CAPTURE(processes);
  CAPTURE(victim);
  CAPTURE(to_string(strategy));
  CAPTURE(seed);
  splitmix64 draw{seed};
  const auto overlapped = draw.below(2) == 0;
  pipe_ends begun{};
  REQUIRE(::pipe(begun.data()) == 0);
  process_group run{processes, [&](node_options node) {
                      const auto options = options_over(processes, strategy);
                      return overlapped
                               ? train_overlapped(net, options, node, begun[1])
                               : train_on(net, options, node, begun[1]);
                    }};
  all_have_begun(begun, processes);
  std::this_thread::sleep_for(std::chrono::microseconds{draw.below(20000)});
  run.kill(victim);
  for (std::size_t p = 0; p < processes; ++p) {
    const auto end = run.wait(p, seconds_left());
    if (p == victim)
      continue;
    CAPTURE(p);
    INFO("last word: ", end.last_word);
    CHECK(end.in_time);
    CHECK(end.exited);
    CHECK(names(end.last_word, victim));
  }
  ::close(begun[0]);
  ::close(begun[1]);
}

void each_may_be_killed(std::size_t processes) {
  const auto net = make_mlp();
  std::uint64_t seed = 0;
  for (auto strategy : strategies)
    for (std::size_t victim = 0; victim < processes; ++victim)
      for (int k = 0; k < kills(); ++k)
        survives(net, processes, victim, strategy, ++seed);
}

/// Kills a process before the run begins or soon after. Process 0 may not know
/// the victim yet.
void may_be_killed_while_joining(std::uint64_t seed) {
  CAPTURE(seed);
  const auto net = make_mlp();
  splitmix64 draw{seed};
  const std::size_t victim = draw.below(3);
  process_group run{3, [&](node_options node) {
                      node.timeout_ms = 800;
                      return train_on(
                        net, options_over(3, graph::merge_strategy::all_reduce),
                        node);
                    }};
  std::this_thread::sleep_for(std::chrono::microseconds{draw.below(30000)});
  run.kill(victim);
  for (std::size_t p = 0; p < 3; ++p) {
    const auto end = run.wait(p);
    if (p == victim)
      continue;
    CAPTURE(victim);
    INFO("last word of ", p, ": ", end.last_word);
    CHECK(end.in_time);
    CHECK(end.exited);
    CHECK(end.last_word.find("process ") != std::string::npos);
  }
}

} // namespace

TEST_CASE("if one of two processes is killed, the other names it") {
  each_may_be_killed(2);
}

TEST_CASE("if one of three processes is killed, the others name it") {
  each_may_be_killed(3);
}

TEST_CASE(
  "if a process is killed while joining, the others end with an error") {
  for (int k = 0; k < kills(); ++k)
    may_be_killed_while_joining(static_cast<std::uint64_t>(k));
}

TEST_CASE("processes that run the same number of steps end without an error") {
  const auto net = make_mlp();
  for (int round = 0; round < 5; ++round) {
    process_group run{3, [&](node_options node) {
                        auto options =
                          options_over(3, graph::merge_strategy::reduce);
                        options.parameters = net.parameters();
                        options.nodes = node;
                        executor exe{net.main, options};
                        for (int s = 0; s < round + 1; ++s)
                          exe.run(exe.own_share(net.batch(0, 7)));
                        return std::string{"done"};
                      }};
    for (std::size_t p = 0; p < 3; ++p)
      CHECK(run.wait(p).last_word == "done");
  }
}

TEST_CASE("if a process leaves the run, the errors of the others name it") {
  const auto net = make_mlp();
  for (std::size_t leaver : {0, 2}) {
    process_group run{3, [&](node_options node) {
                        const auto leaves = node.process == leaver;
                        auto options =
                          options_over(3, graph::merge_strategy::all_reduce);
                        if (!leaves)
                          return train_on(net, options, node);
                        options.parameters = net.parameters();
                        options.nodes = node;
                        executor exe{net.main, options};
                        exe.run(exe.own_share(net.batch(0, 7)));
                        return std::string{"done"};
                      }};
    for (std::size_t p = 0; p < 3; ++p) {
      const auto end = run.wait(p);
      INFO("last word: ", end.last_word);
      CHECK(
        (p == leaver ? end.last_word == "done" : names(end.last_word, leaver)));
    }
  }
}

TEST_CASE("the error of one process is reported by all processes") {
  const auto net = make_mlp();
  auto bad = net.batch(0, 6);
  bad["label"].values<std::int64_t>()[3] = 99; // on device 1
  process_group run{3, [&](node_options node) {
                      auto options =
                        options_over(3, graph::merge_strategy::all_reduce);
                      options.parameters = net.parameters();
                      options.nodes = node;
                      executor exe{net.main, options};
                      exe.run(exe.own_share(net.batch(0, 6)));
                      exe.run(exe.own_share(bad));
                      return std::string{"no error"};
                    }};
  for (std::size_t p = 0; p < 3; ++p) {
    const auto end = run.wait(p);
    CAPTURE(p);
    INFO("last word: ", end.last_word);
    CHECK(end.last_word.find("99") != std::string::npos);
    CHECK(end.last_word.find("cpu:1") != std::string::npos);
  }
}

TEST_CASE("leaving does not wait for steps that other processes never start") {
  const auto net = make_mlp();
  process_group run{2, [&](node_options node) {
                      auto options =
                        options_over(2, graph::merge_strategy::all_reduce);
                      options.parameters = net.parameters();
                      options.nodes = node;
                      executor exe{net.main, options};
                      if (node.process == 0)
                        exe.submit(exe.own_share(net.batch(0, 7)));
                      else
                        std::this_thread::sleep_for(std::chrono::hours{1});
                      return std::string{"done"};
                    }};
  const auto end = run.wait(0);
  CHECK(end.in_time);
  CHECK(end.last_word == "done");
}

TEST_CASE("a stopped process does not prevent others from leaving") {
  const auto net = make_mlp();
  pipe_ends begun{}, go{};
  REQUIRE(::pipe(begun.data()) == 0);
  REQUIRE(::pipe(go.data()) == 0);
  process_group run{2, [&](node_options node) {
                      auto options =
                        options_over(2, graph::merge_strategy::all_reduce);
                      options.parameters = net.parameters();
                      options.nodes = node;
                      executor exe{net.main, options};
                      exe.run(exe.own_share(net.batch(0, 7)));
                      (void)!::write(begun[1], "b", 1);
                      if (node.process == 1)
                        std::this_thread::sleep_for(std::chrono::hours{1});
                      char byte = 0;
                      (void)!::read(go[0], &byte, 1);
                      return std::string{"done"};
                    }};
  all_have_begun(begun, 2);
  run.kill(1, SIGSTOP);
  (void)!::write(go[1], "g", 1);
  const auto end = run.wait(0);
  CHECK(end.in_time);
  CHECK(end.last_word == "done");
  run.kill(1, SIGCONT);
  for (auto fd : {begun[0], begun[1], go[0], go[1]})
    ::close(fd);
}

TEST_CASE("waiting for a process that never joins ends with an error") {
  const auto net = make_mlp();
  process_group run{3, [&](node_options node) {
                      if (node.process == 1)
                        return std::string{"not here"};
                      node.timeout_ms = node.process == 0 ? 300 : 20000;
                      return train_on(
                        net, options_over(3, graph::merge_strategy::reduce),
                        node);
                    }};
  for (std::size_t p : {0, 2}) {
    const auto end = run.wait(p);
    INFO("last word: ", end.last_word);
    CHECK(end.in_time);
    CHECK(end.exited);
    // Process 2 names process 0 if it has come too late.
    const auto named =
      names(end.last_word, 1) || (p == 2 && names(end.last_word, 0));
    CHECK(named);
  }
}

} // TEST_SUITE("actors.lost_process")
