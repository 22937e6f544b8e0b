// SPDX-License-Identifier: Apache-2.0

// Processes that are stopped, slow or stuck.

#include <troupe/actors/remote/peer_watch.hpp>

#include <actors/remote/process_group.hpp>
#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;
using namespace std::chrono_literals;
using graph::merge_strategy;

TEST_SUITE("actors.remote.peer_watch") {

namespace {

/// A rank of a group of three processes with one rank each, of which the test
/// says what they do.
class made_up_rank final : public comm::communicator {
public:
  made_up_rank() : communicator(0, 3) {
    for (std::size_t p : {1, 2})
      others_.push_back({{p}, 1, 0, ""});
  }

  /// Process 1 and 2 live, but for `silent`.
  void live_on(std::size_t silent = 0) {
    std::lock_guard guard{mutex_};
    for (auto& o : others_)
      o.beats += o.ranks.front() != silent;
  }
  void does(std::size_t process, std::uint64_t steps, std::string what) {
    std::lock_guard guard{mutex_};
    others_[process - 1].steps = steps;
    others_[process - 1].doing = std::move(what);
  }
  void waits(std::optional<comm::waiting_call> for_what) {
    std::lock_guard guard{mutex_};
    waiting_ = std::move(for_what);
  }
  std::string told() const {
    std::lock_guard guard{mutex_};
    return told_;
  }

  launch_result start(const comm::collective_call&, completion&) override {
    return {};
  }
  void fail(const error&) override {}
  void give_up(ticket, ticket, const error&) override {}
  void leave(const error&) override {}
  std::vector<comm::waiting_call> waiting_calls(std::size_t) const override {
    std::lock_guard guard{mutex_};
    return waiting_ ? std::vector{*waiting_}
                    : std::vector<comm::waiting_call>{};
  }
  void beat(std::uint64_t, std::string_view doing) override {
    std::lock_guard guard{mutex_};
    told_ = doing;
  }
  std::vector<comm::peer_state> peers() const override {
    std::lock_guard guard{mutex_};
    return others_;
  }

private:
  mutable std::mutex mutex_;
  std::vector<comm::peer_state> others_;
  std::optional<comm::waiting_call> waiting_;
  std::string told_;
};

/// What a watch has found.
struct findings {
  std::mutex mutex;
  std::string lost;
  std::vector<std::string> noticed;
  std::size_t has_left = 99; // a process that is silent for this reason

  std::string lost_now() {
    std::lock_guard guard{mutex};
    return lost;
  }
  std::size_t notices() {
    std::lock_guard guard{mutex};
    return noticed.size();
  }
};

peer_watch::parts watch_of(made_up_rank& rank, findings& found) {
  peer_watch::parts p;
  p.ends = {&rank};
  p.silence_limit = 100ms;
  p.process_of = {0, 1, 2};
  p.steps = [] { return 7; };
  p.is_paused = [] { return false; };
  p.doing = [] { return std::string{"sleeps"}; };
  p.lost = [&](std::size_t process, const std::string& why) {
    std::lock_guard guard{found.mutex};
    found.lost = std::to_string(process) + ": " + why;
    return process != found.has_left;
  };
  p.noticed = [&](std::size_t, const std::string& what) {
    std::lock_guard guard{found.mutex};
    found.noticed.push_back(what);
  };
  return p;
}

/// Lets the processes live for a while, but for one.
template <class Condition>
bool lives_until(made_up_rank& rank, std::size_t silent, Condition holds) {
  for (int i = 0; i < 10'000; ++i) {
    if (holds())
      return true;
    rank.live_on(silent);
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

comm::waiting_call call_without(std::vector<std::size_t> missing) {
  return {9, "all_reduce of w@GRAD", {0}, std::move(missing)};
}

} // namespace

TEST_CASE("a process that gives no sign of life is lost, and is named") {
  made_up_rank rank;
  findings found;
  rank.does(2, 3, "mul#3@cpu:2, step 3: runs on worker 0");
  peer_watch watch{watch_of(rank, found)};
  CHECK(lives_until(rank, 2, [&] { return !found.lost_now().empty(); }));
  CHECK(
    found.lost_now().starts_with("2: process 2 is lost: no sign of life for "));
  CHECK(found.lost_now().find("mul#3@cpu:2") != std::string::npos);
}

TEST_CASE("while one process is silent because it has left, another can be "
          "lost") {
  made_up_rank rank;
  findings found;
  found.has_left = 1;
  peer_watch watch{watch_of(rank, found)};
  CHECK(lives_until(rank, 1, [&] { return !found.lost_now().empty(); }));
  CHECK(found.lost_now().starts_with("1: "));
  const auto both_silent = [&] { return found.lost_now().starts_with("2: "); };
  for (int i = 0; i < 10'000 && !both_silent(); ++i)
    std::this_thread::sleep_for(1ms);
  CHECK(both_silent());
}

TEST_CASE("processes that live are not lost, however slow they are") {
  made_up_rank rank;
  findings found;
  rank.waits(call_without({1, 2}));
  peer_watch watch{watch_of(rank, found)};
  const auto end = std::chrono::steady_clock::now() + 400ms;
  lives_until(rank, 0, [&] { return std::chrono::steady_clock::now() > end; });
  CHECK(found.lost_now().empty());
}

TEST_CASE("a call that waits long is noticed once, with who is behind") {
  made_up_rank rank;
  findings found;
  rank.does(1, 5, "conv2d#1@cpu:1, step 5: runs on worker 0");
  rank.does(2, 4, "relu#2@cpu:2, step 4: runs on worker 0");
  rank.waits(call_without({1, 2}));
  peer_watch watch{watch_of(rank, found)};
  CHECK(lives_until(rank, 0, [&] { return found.notices() == 1; }));
  const auto end = std::chrono::steady_clock::now() + 300ms;
  lives_until(rank, 0, [&] { return std::chrono::steady_clock::now() > end; });
  CHECK(found.notices() == 1);
  CHECK(found.noticed[0].starts_with("all_reduce of w@GRAD has waited "));
  CHECK(found.noticed[0].find("for process 2 (relu#2@cpu:2")
        != std::string::npos);
  CHECK(found.noticed[0].ends_with("missing ranks: 1, 2"));
  auto next = call_without({1});
  next.position = 10;
  rank.waits(next);
  CHECK(lives_until(rank, 0, [&] { return found.notices() == 2; }));
}

TEST_CASE(
  "calls whose values are being merged, or that go on, are not noticed") {
  made_up_rank rank;
  findings found;
  peer_watch watch{watch_of(rank, found)};
  auto call = call_without({});
  const auto end = std::chrono::steady_clock::now() + 200ms;
  lives_until(rank, 0, [&] {
    rank.waits(call);
    return std::chrono::steady_clock::now() > end;
  });
  call.missing = {1};
  const auto later = std::chrono::steady_clock::now() + 200ms;
  lives_until(rank, 0, [&] {
    ++call.position;
    rank.waits(call);
    return std::chrono::steady_clock::now() > later;
  });
  CHECK(found.notices() == 0);
}

TEST_CASE("a process that is paused holds up a call for as long as it likes") {
  made_up_rank rank;
  findings found;
  rank.does(1, 5, std::string{comm::peer_state::paused});
  rank.waits(call_without({1}));
  auto parts = watch_of(rank, found);
  parts.silence_limit = 20ms;
  parts.stall_limit = 60ms;
  peer_watch watch{std::move(parts)};
  CHECK(lives_until(rank, 0, [&] { return found.notices() == 1; }));
  CHECK(found.noticed[0].find("(is paused)") != std::string::npos);
  const auto end = std::chrono::steady_clock::now() + 200ms;
  lives_until(rank, 0, [&] { return std::chrono::steady_clock::now() > end; });
  CHECK(found.lost_now().empty());
  rank.does(1, 5, "runs no step"); // goes on, and then does not
  CHECK(lives_until(rank, 0, [&] { return !found.lost_now().empty(); }));
  CHECK(found.lost_now().starts_with("1: process 1 is stuck: "));
}

TEST_CASE("a process tells at once that it is paused") {
  made_up_rank rank;
  findings found;
  auto parts = watch_of(rank, found);
  parts.silence_limit = 1h;
  parts.is_paused = [] { return true; };
  parts.doing = [] { return std::string{comm::peer_state::paused}; };
  peer_watch watch{std::move(parts)};
  CHECK(lives_until(rank, 0, [&] { return rank.told() == "is paused"; }));
}

TEST_CASE("a process that lives and holds up a call for too long is stuck") {
  made_up_rank rank;
  findings found;
  rank.waits(call_without({1}));
  auto parts = watch_of(rank, found);
  parts.stall_limit = 200ms;
  peer_watch watch{std::move(parts)};
  CHECK(lives_until(rank, 0, [&] { return !found.lost_now().empty(); }));
  CHECK(found.lost_now().starts_with("1: process 1 is stuck: all_reduce of "
                                     "w@GRAD has waited "));
}

TEST_CASE("a process without progress tells what it does") {
  made_up_rank rank;
  findings found;
  peer_watch watch{watch_of(rank, found)};
  CHECK(lives_until(rank, 0, [&] { return rank.told() == "sleeps"; }));
}

TEST_CASE("a stopped process is lost after the limit, and all name it") {
  constexpr int limit_ms = 1000;
  const auto net = make_mlp();
  for (std::size_t victim : {0, 2}) {
    CAPTURE(victim);
    std::array<int, 2> begun{};
    REQUIRE(::pipe(begun.data()) == 0);
    process_group run{3, [&](node_options node) {
                        node.silence_limit_ms = limit_ms;
                        return train_on(
                          net, options_over(3, merge_strategy::all_reduce),
                          std::move(node), begun[1]);
                      }};
    wait_for_bytes(begun[0], 3);
    run.kill(victim, SIGSTOP);
    for (std::size_t p = 0; p < 3; ++p) {
      if (p == victim)
        continue;
      const auto end = run.wait(p);
      CHECK(end.exited);
      CHECK(end.last_word.find("process " + std::to_string(victim)
                               + " is lost: no sign of life for ")
            != std::string::npos);
    }
    run.kill(victim, SIGCONT);
    const auto end = run.wait(victim);
    CHECK(end.exited);
    CHECK(end.last_word.find("process") != std::string::npos);
    ::close(begun[0]);
    ::close(begun[1]);
  }
}

TEST_CASE("a process that is stopped for half of the limit does not matter") {
  constexpr int limit_ms = 1000;
  const auto net = make_mlp();
  std::array<int, 2> begun{};
  REQUIRE(::pipe(begun.data()) == 0);
  process_group run{
    3, [&](node_options node) {
      auto options = options_over(3, merge_strategy::all_reduce);
      options.parameters = net.parameters();
      node.silence_limit_ms = limit_ms;
      options.nodes = std::move(node);
      executor exe{net.main, options};
      exe.run(exe.own_share(net.batch(0, 7)));
      (void)!::write(begun[1], "b", 1);
      for (std::uint64_t s = 1; s < 400; ++s) {
        exe.run(exe.own_share(net.batch(s, 7)));
        std::this_thread::sleep_for(1ms); // longer than the stop
      }
      return std::string{"done"};
    }};
  wait_for_bytes(begun[0], 3);
  run.kill(1, SIGSTOP);
  std::this_thread::sleep_for(500ms);
  run.kill(1, SIGCONT);
  for (std::size_t p = 0; p < 3; ++p)
    CHECK(run.wait(p).last_word == "done");
  ::close(begun[0]);
  ::close(begun[1]);
}

TEST_CASE("a process that feeds late is noticed by the others") {
  const auto net = make_mlp();
  process_group run{2, [&](node_options node) {
                      std::mutex mutex;
                      std::string noticed;
                      auto options =
                        options_over(2, merge_strategy::all_reduce);
                      options.parameters = net.parameters();
                      const auto process = node.process;
                      node.silence_limit_ms = 200;
                      node.noticed = [&](std::size_t, const std::string& what) {
                        std::lock_guard guard{mutex};
                        noticed = what;
                      };
                      options.nodes = std::move(node);
                      executor exe{net.main, options};
                      exe.run(exe.own_share(net.batch(0, 7)));
                      if (process == 1)
                        std::this_thread::sleep_for(700ms);
                      exe.run(exe.own_share(net.batch(1, 7)));
                      std::lock_guard guard{mutex};
                      return noticed;
                    }};
  const auto first = run.wait(0), second = run.wait(1);
  CHECK(first.last_word.find("for process 1 (runs no step)")
        != std::string::npos);
  CHECK(first.last_word.find("missing ranks: 1") != std::string::npos);
  CHECK(second.last_word.empty());
}

} // TEST_SUITE("actors.remote.peer_watch")
