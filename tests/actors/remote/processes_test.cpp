// SPDX-License-Identifier: Apache-2.0

// Steps of a graph whose places are processes: how they end and fail, and what
// remains valid when a process leaves.

#include <troupe/actors/executor.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/child_process.hpp>

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using graph::merge_strategy;

TEST_SUITE("actors.remote.processes") {

namespace {

constexpr std::uint64_t steps = 6;

/// FNV-1a over the values of all variables that the graph has on a device.
std::uint64_t fingerprint(const graph::ssa_graph& g, std::size_t device,
                          scope& parameters) {
  std::set<std::string_view> names;
  for (auto& v : g.vars)
    if (v.persistable && v.device == device)
      names.insert(v.name);
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (auto name : names) {
    const auto& value = parameters.var(name).as_tensor();
    for (std::size_t i = 0; i < value.bytes(); ++i)
      hash =
        (hash ^ static_cast<unsigned char>(value.raw()[i])) * 0x100000001b3u;
  }
  return hash;
}

/// A run over several processes. This is process 0, the others are its
/// children. Device d is in process `process_of[d]`.
struct several {
  small_net net;
  std::vector<std::size_t> process_of;
  merge_strategy strategy = merge_strategy::all_reduce;
  std::uint32_t steps_in_flight = 2;
  pipe_pair port;
  std::uint32_t accumulate = 1;

  executor_options options(std::size_t process) const {
    executor_options o;
    o.devices = parse_devices("cpu:" + std::to_string(process_of.size()));
    o.threads = 1;
    o.strategy = strategy;
    o.steps_in_flight = steps_in_flight;
    o.accumulate = accumulate;
    o.parameters = net.parameters();
    auto& n = o.nodes.emplace();
    n.process_of_device = process_of;
    n.process = process;
    n.timeout_ms = 20000;
    if (process == 0)
      n.listening = [this](std::uint16_t p) {
        for (std::size_t i = 1; i < processes(); ++i)
          port.put(p);
      };
    else
      n.port = port.get<std::uint16_t>();
    return o;
  }

  std::size_t processes() const {
    return 1 + *std::ranges::max_element(process_of);
  }

  pid_t child(std::size_t process,
              const std::function<void(executor&)>& act) const {
    return in_child([&] {
      executor exe{net.main, options(process)};
      act(exe);
    });
  }
};

/// Runs steps, with as many in flight as the options allow. Returns their
/// losses on a device.
std::vector<double> run_steps(executor& exe, const small_net& net,
                              std::size_t device) {
  constexpr std::int64_t samples[] = {7, 2, 1, 8, 3, 1};
  std::vector<double> losses;
  std::vector<step_id> under_way;
  for (std::uint64_t s = 0; s < steps; ++s)
    under_way.push_back(exe.submit(exe.own_share(net.batch(s, samples[s]))));
  for (auto id : under_way)
    losses.push_back(exe.wait(id).losses[device]);
  return losses;
}

bool same(double a, double b) {
  return a == b || (a != a && b != b); // NaN for devices without samples
}

void split_run_agrees(const small_net& net, merge_strategy strategy,
                      std::uint32_t steps_in_flight,
                      const std::vector<std::size_t>& process_of) {
  CAPTURE(net.name);
  CAPTURE(to_string(strategy));
  several run{net, process_of, strategy, steps_in_flight, {}};
  pipe_pair results; // of all devices, in the order of processes
  std::vector<pid_t> children;
  std::deque<pipe_pair> turns(run.processes());
  const auto report = [&](executor& exe, std::size_t process) {
    std::size_t replica = 0;
    for (std::size_t d = 0; d < process_of.size(); ++d)
      if (process_of[d] == process)
        results.put(
          fingerprint(exe.graph(), d, exe.parameters().replica(replica++)));
  };
  for (std::size_t p = 1; p < run.processes(); ++p)
    children.push_back(run.child(p, [&, p](executor& exe) {
      run_steps(exe, net, 0);
      turns[p].get<char>();
      report(exe, p);
    }));
  const auto one = [&] {
    auto options = run.options(0);
    options.nodes.reset();
    options.lowering.share_parameters = options.lowering.gather_products =
      false;
    return options;
  }();
  executor together{net.main, one};
  const auto expected = run_steps(together, net, 0);
  {
    executor exe{net.main, run.options(0)};
    const auto here = run_steps(exe, net, 0);
    for (std::size_t s = 0; s < steps; ++s)
      CHECK(same(here[s], expected[s]));
    CHECK(fingerprint(exe.graph(), 0, exe.parameters())
          == fingerprint(exe.graph(), 0, together.parameters()));
  }
  // One process after the other, so that the pipe has the results in order.
  for (std::size_t p = 1; p < run.processes(); ++p) {
    turns[p].put('t');
    CHECK(exit_code(children[p - 1]) == 0);
  }
  for (std::size_t p = 1; p < run.processes(); ++p)
    for (std::size_t d = 0; d < process_of.size(); ++d)
      if (process_of[d] == p)
        CHECK(results.get<std::uint64_t>()
              == fingerprint(together.graph(), d,
                             together.parameters().replica(d)));
}

feed_map bad_batch(const small_net& net) {
  auto bad = net.batch(0, 4);
  bad["label"].values<std::int64_t>()[3] = 99; // on the last device
  return bad;
}

} // namespace

TEST_CASE("several processes train bit-identically to one process") {
  for (std::uint32_t in_flight : {1u, 3u}) {
    split_run_agrees(make_mlp(), merge_strategy::all_reduce, in_flight, {0, 1});
    split_run_agrees(make_lenet(), merge_strategy::reduce, in_flight, {0, 1});
  }
  split_run_agrees(make_lenet(), merge_strategy::all_reduce, 2, {0, 1, 2});
  split_run_agrees(make_lenet(), merge_strategy::reduce, 2, {0, 1, 2, 1});
  // The six updates run on the first six devices, so process 2 does not read
  // the learning rate.
  split_run_agrees(make_mlp(), merge_strategy::reduce, 2,
                   {0, 1, 1, 1, 1, 1, 2});
  split_run_agrees(make_word2vec(), merge_strategy::replicate, 2, {0, 1});
  split_run_agrees(make_resnet(true), merge_strategy::reduce, 2, {0, 1});
}

TEST_CASE("a failure reaches all processes with the original error") {
  several run{make_mlp(), {0, 1}, merge_strategy::all_reduce, 2, {}};
  const auto is_right = [](const error& e) {
    return e.code() == errc::out_of_range && says(e, "99")
           && e.where().device == "cpu:1" && e.where().step == 0;
  };
  const auto bad = bad_batch(run.net);
  const auto child = run.child(1, [&](executor& exe) {
    const auto e = caught([&] { exe.run(exe.own_share(bad)); });
    exe.run(exe.own_share(run.net.batch(1, 4)));
    if (!is_right(e))
      ::_exit(2);
  });
  executor exe{run.net.main, run.options(0)};
  CHECK(is_right(caught([&] { exe.run(exe.own_share(bad)); })));
  exe.run(exe.own_share(run.net.batch(1, 4)));
  CHECK(exit_code(child) == 0);
}

TEST_CASE("a step fails even if other processes have not reached it") {
  several run{make_mlp(), {0, 1}, merge_strategy::all_reduce, 2, {}};
  const auto bad = bad_batch(run.net);
  pipe_pair failed;
  const auto child = run.child(1, [&](executor& exe) {
    for (int i = 0; i < 3; ++i)
      caught([&] { exe.run(exe.own_share(bad)); });
    failed.put('f');
    exe.run(exe.own_share(run.net.batch(1, 4)));
  });
  executor exe{run.net.main, run.options(0)};
  failed.get<char>();
  for (int i = 0; i < 3; ++i)
    CHECK(caught([&] { exe.run(exe.own_share(bad)); }).code()
          == errc::out_of_range);
  CHECK_NOTHROW(exe.run(exe.own_share(run.net.batch(1, 4))));
  CHECK(exit_code(child) == 0);
}

void cancelling_does_not_wait(std::uint32_t accumulate) {
  several run{make_mlp(), {0, 1}, merge_strategy::all_reduce,
              2,          {},     accumulate};
  const auto step = [&](executor& exe) {
    return exe.submit(exe.own_share(run.net.batch(1, 4)));
  };
  constexpr int before = 4; // steps
  pipe_pair cancelled;
  const auto child = run.child(1, [&](executor& exe) {
    for (int i = 0; i < before; ++i)
      exe.wait(step(exe));
    cancelled.get<char>(); // no further step begins here before
    for (int i = 0; i < 2; ++i)
      if (caught([&] { exe.wait(step(exe)); }).code() != errc::cancelled)
        ::_exit(2);
    exe.wait(step(exe));
  });
  executor exe{run.net.main, run.options(0)};
  for (int i = 0; i < before; ++i)
    exe.wait(step(exe));
  const auto first = step(exe);
  const auto second = step(exe);
  while (exe.why().links.back().how_far != actors::progress::launched)
    std::this_thread::yield(); // until a call waits for the other process
  exe.cancel();
  CHECK(caught([&] { exe.wait(first); }).code() == errc::cancelled);
  CHECK(caught([&] { exe.wait(second); }).code() == errc::cancelled);
  cancelled.put('c');
  exe.wait(step(exe));
  CHECK(exit_code(child) == 0);
}

TEST_CASE("cancelling does not wait for other processes") {
  cancelling_does_not_wait(1);
}

TEST_CASE("cancelling does not wait if not all steps make the same calls") {
  cancelling_does_not_wait(2);
}

TEST_CASE("steps that a process ran before leaving succeed, later ones fail") {
  for (int round = 0; round < 5; ++round) {
    several run{make_mlp(), {0, 1}, merge_strategy::all_reduce, 2, {}};
    const auto child = run.child(1, [&](executor& exe) {
      exe.run(exe.own_share(run.net.batch(0, 4)));
      exe.run(exe.own_share(run.net.batch(1, 4)));
    });
    executor exe{run.net.main, run.options(0)};
    CHECK_NOTHROW(exe.run(exe.own_share(run.net.batch(0, 4))));
    CHECK_NOTHROW(exe.run(exe.own_share(run.net.batch(1, 4))));
    for (int i = 0; i < 2; ++i) {
      const auto e =
        caught([&] { exe.run(exe.own_share(run.net.batch(2, 4))); });
      CHECK(e.code() == errc::peer_failure);
      CHECK(says(e, "process 1 has left the run after 2 steps"));
    }
    CHECK(exit_code(child) == 0);
  }
}

TEST_CASE("a killed process ends the run, and the error names it") {
  several run{make_mlp(), {0, 1}, merge_strategy::reduce, 3, {}};
  pipe_pair ended;
  const auto child = run.child(1, [&](executor& exe) {
    exe.run(exe.own_share(run.net.batch(0, 4)));
    ended.get<char>(); // waits until the first step has ended there too
    exe.submit(exe.own_share(run.net.batch(1, 4)));
    ::raise(SIGKILL);
  });
  executor exe{run.net.main, run.options(0)};
  exe.run(exe.own_share(run.net.batch(0, 4)));
  ended.put('e');
  const auto e = caught([&] {
    for (;;)
      exe.run(exe.own_share(run.net.batch(1, 4)));
  });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "process 1 is lost"));
  CHECK(caught([&] { exe.submit(exe.own_share(run.net.batch(1, 4))); }).code()
        == errc::peer_failure);
  CHECK(exit_code(child) == -1);
}

TEST_CASE("processes that merge nothing learn each other's losses") {
  several run{make_mlp(), {0, 1}, merge_strategy::none, 2, {}};
  const auto child = run.child(1, [&](executor& exe) {
    if (!std::isfinite(run_steps(exe, run.net, 0).front()))
      ::_exit(2);
  });
  executor exe{run.net.main, run.options(0)};
  CHECK(exe.graph().transfers.empty());
  const auto result = run_steps(exe, run.net, 1);
  CHECK(result.size() == steps);
  CHECK(std::isfinite(result.front()));
  CHECK(exit_code(child) == 0);
}

TEST_CASE("a process holds only actors and variables of its own devices") {
  several run{make_mlp(), {0, 1}, merge_strategy::all_reduce, 2, {}};
  const auto counts_own_handles = [](const executor& exe,
                                     std::uint32_t device) {
    const auto is_here = [device](const auto& handle) {
      return handle.device == device;
    };
    const auto stats = exe.stats();
    const auto& g = exe.graph();
    return std::ranges::count_if(g.ops, is_here)
             == static_cast<std::ptrdiff_t>(stats.op_actors)
           && std::ranges::count_if(g.vars, is_here)
                == static_cast<std::ptrdiff_t>(stats.variable_actors);
  };
  const auto child = run.child(1, [&](executor& exe) {
    exe.run(exe.own_share(run.net.batch(0, 4)));
    if (exe.stats().stream_actors != 3 || !counts_own_handles(exe, 1))
      ::_exit(2);
  });
  executor exe{run.net.main, run.options(0)};
  exe.run(exe.own_share(run.net.batch(0, 4)));
  CHECK(values_of(exe.parameters().replica(1)).empty());
  CHECK(counts_own_handles(exe, 0));
  CHECK(exe.stats().peak_bytes[1] == 0);
  CHECK(exe.stats().stream_actors == 3); // one of them for collectives
  CHECK(exit_code(child) == 0);
}

} // TEST_SUITE("actors.remote.processes")
