// SPDX-License-Identifier: Apache-2.0

// Groups over an engine that add the values of each host first.
#include "../group_rig.hpp"
#include "../values.hpp"
#include "host_groups.hpp"
#include "shared_calls.hpp"
#include "silent_process.hpp"

#include <troupe/comm/engine/nearby_signals.hpp>
#include <troupe/comm/engine/neighbours.hpp>

#include <support/caught.hpp>
#include <support/child_process.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using namespace std::chrono_literals;
using troupe::test::caught;
using troupe::test::exit_code;
using troupe::test::in_child;
using troupe::test::pipe_pair;
using troupe::test::says;
using troupe::test::skip_case;

TEST_SUITE("comm.engine.host_groups") {

namespace {

void on_all(std::size_t ranks, const std::function<void(std::size_t)>& act) {
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { act(r); });
}

/// What one process gives if it adds the dense values of each host first.
std::vector<variable> merged_by_host(const shared_call& call,
                                     const host_map& hosts) {
  const auto is_rows = [](const variable& v) { return v.is_rows(); };
  if (call.kind == collective_kind::broadcast
      || std::ranges::any_of(call.given, is_rows))
    return call.expected;
  // In the order of their first processes, whose numbers are their own here.
  std::vector<variable> sums;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    std::vector<variable> inside;
    for (std::size_t r = 0; r < call.given.size(); ++r)
      if (hosts[r % hosts.size()] == h && call.given[r].has_value())
        inside.push_back(call.given[r]);
    if (!inside.empty())
      sums.push_back(
        merged_in_one_process(collective_kind::all_reduce, 0, inside)[0]);
  }
  const auto sum =
    merged_in_one_process(collective_kind::all_reduce, 0, sums)[0];
  return std::vector<variable>(call.given.size(), sum);
}

struct layout {
  host_map hosts; ///< the first process of each new host has the next number
  std::size_t ranks;
};

const std::vector<layout> layouts{
  {{0, 0, 1, 1}, 4},       {{0, 1, 0, 1}, 4}, {{0, 1, 1, 2, 2, 2}, 6},
  {{0, 0, 1}, 6},          {{0, 1}, 4},       {{0, 1, 2, 2}, 5},
  {{0, 0, 0, 0, 1, 1}, 6}, {{0, 0, 1, 1}, 8}};

std::size_t bytes_between_hosts(memory_hub& hub, const host_map& hosts) {
  std::size_t bytes = 0;
  for (std::size_t from = 0; from < hosts.size(); ++from)
    for (std::size_t to = 0; to < hosts.size(); ++to)
      if (hosts[from] != hosts[to])
        bytes += hub.bytes_sent(from, to);
  return bytes;
}

/// A group of three processes, of which only the first one is real: it has
/// begun an all_reduce. The test plays its neighbour and the other host.
struct played_hosts {
  static constexpr std::int64_t elements = 5'000;

  played_hosts() {
    x.set(random_tensor({elements}, dtype::float32, 1));
    std::jthread joining{[this] {
      end = std::move(
        join_engine_group(std::make_unique<memory_engine>(hub, 0), first)
          .front());
    }};
    shm_group_options at;
    at.path = path + ".0";
    at.process = 1;
    at.processes = 2;
    at.ranks = {1};
    seen = std::make_unique<neighbours>(at, memory);
    told.seen = &seen;
    joining.join();
    const collective_call call{collective_kind::all_reduce, 0, {&value, 1}};
    neighbour.say_first(call);
    elsewhere.say_first(call);
    end->start(call, told);
    wait_until_all_came(*end);
  }

  struct completion final : troupe::completion {
    void completed(std::exception_ptr failure) noexcept override {
      try {
        (*seen)->require_intact();
      } catch (const error&) {
        had_broken_off = true;
      }
      whole.completed(failure);
    }
    const std::unique_ptr<neighbours>* seen = nullptr;
    bool had_broken_off = false;
    outcome whole;
  };

  std::string path = socket_path();
  std::shared_ptr<memory_hub> hub = std::make_shared<memory_hub>(3, 1);
  engine_group_options first = on_host(0, path);
  silent_process neighbour{hub, 1, first};
  silent_process elsewhere{hub, 2, on_host(1, path)};
  std::shared_ptr<process_memory> memory = std::make_shared<process_memory>();
  std::unique_ptr<neighbours> seen;
  variable x;
  rank_value value{"x", &x, &x};
  completion told;
  std::unique_ptr<communicator> end; // goes first
};

/// All ranks give `elements` ones; checks the sum.
void all_reduce_ones(communicator& on, std::int64_t elements) {
  auto t = tensor::make(host(), {elements}, dtype::float32);
  std::ranges::fill(t.values<float>(), 1.f);
  variable x;
  x.set(std::move(t));
  all_reduce(on, x);
  for (auto v : x.as_tensor().values<float>())
    if (v != float(on.size()))
      throw std::runtime_error("a wrong sum: " + std::to_string(v));
}

} // namespace

TEST_CASE("values of all sizes have the bits of sums host by host") {
  for (auto& [hosts, ranks] : layouts)
    for (unsigned seed = 1; seed <= 3; ++seed) {
      CAPTURE(seed);
      CAPTURE(hosts.size());
      auto ends = join_on_hosts(hosts, ranks, seed);
      std::minstd_rand random{seed};
      std::vector<shared_call> calls;
      for (int i = 0; i < 16; ++i) {
        calls.push_back(random_call(ranks, random));
        calls.back().expected = merged_by_host(calls.back(), hosts);
      }
      on_all(ranks, [&](std::size_t r) {
        for (auto& c : calls) {
          const rank_value value{"x", &c.given[r], &c.given[r]};
          run(*ends[r], {c.kind, c.root, {&value, 1}});
          if (c.kind != collective_kind::reduce || r == c.root)
            CHECK(same_values(c.given[r], c.expected[r]));
        }
      });
    }
}

TEST_CASE("many values of a call are exchanged together between hosts") {
  constexpr std::size_t ranks = 4, values = 9;
  auto ends = join_on_hosts({0, 0, 1, 1}, ranks, 3);
  std::vector<std::vector<variable>> x(values, std::vector<variable>(ranks));
  std::vector<std::vector<variable>> expected;
  for (std::size_t i = 0; i < values; ++i) {
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto seed = unsigned(i * ranks + r);
      auto t = i % 3 == 0 ? random_tensor({1, 700}, dtype::float32, seed)
                          : random_tensor({std::int64_t(1) << (2 * i)},
                                          dtype::float32, seed);
      make_whole(t);
      if (i % 3 == 0)
        x[i][r].set(selected_rows{{1}, 4, t});
      else
        x[i][r].set(t);
    }
    expected.push_back(
      merged_in_one_process(collective_kind::all_reduce, 0, x[i]));
  }
  on_all(ranks, [&](std::size_t r) {
    std::vector<rank_value> call;
    for (auto& of_ranks : x)
      call.push_back({"x", &of_ranks[r], &of_ranks[r]});
    run(*ends[r], {collective_kind::all_reduce, 0, call});
    for (std::size_t i = 0; i < values; ++i)
      CHECK(same_values(x[i][r], expected[i][r]));
  });
}

TEST_CASE("a host sends and receives each value once, whatever its ranks") {
  constexpr std::int64_t elements = 3 << 20; // one pass of pieces and more
  constexpr auto bytes = std::size_t(elements) * sizeof(float);
  for (const auto& hosts :
       {host_map{0, 0, 1, 1}, host_map{0, 1, 0, 1}, host_map{0, 0, 0, 1}}) {
    const auto hub = std::make_shared<memory_hub>(4, 1);
    auto ends = join_on_hosts(hosts, 4, hub);
    on_all(4, [&](std::size_t r) { all_reduce_ones(*ends[r], elements); });
    // There and back, half of it each.
    CHECK(bytes_between_hosts(*hub, hosts) == 2 * bytes);
  }
}

TEST_CASE("the processes of a host share the work") {
  for (const auto& hosts : {host_map{0, 0, 1, 1}, host_map{0, 1, 0, 1}}) {
    const auto hub = std::make_shared<memory_hub>(4, 1);
    auto ends = join_on_hosts(hosts, 4, hub);
    on_all(4, [&](std::size_t r) { all_reduce_ones(*ends[r], 3 << 20); });
    std::vector<std::size_t> sent(4);
    for (std::size_t from = 0; from < 4; ++from)
      for (std::size_t to = 0; to < 4; ++to)
        if (hosts[from] != hosts[to])
          sent[from] += hub->bytes_sent(from, to);
    CHECK(sent == std::vector<std::size_t>(4, 6 << 20));
  }
}

TEST_CASE("a rank that uses its memory again at once disturbs no other") {
  constexpr std::int64_t elements = 30'000;
  auto ends = join_on_hosts({0, 0, 0, 1}, 4, 1);
  on_all(4, [&](std::size_t r) {
    auto* shared = ends[r]->memory(); // rank 3 is alone on its host
    auto t =
      tensor::make(shared ? *shared : host(), {elements}, dtype::float32);
    for (int call = 0; call < 300; ++call) {
      std::ranges::fill(t.values<float>(), 1.f);
      variable x;
      x.set(t);
      all_reduce(*ends[r], x);
      CHECK(std::ranges::count(x.as_tensor().values<float>(), 4.f) == elements);
      std::ranges::fill(x.as_tensor().values<float>(), -100.f);
    }
  });
}

TEST_CASE("inside a host, the engine carries nothing of a merge") {
  const host_map hosts{0, 0, 1, 1};
  const auto hub = std::make_shared<memory_hub>(4, 1);
  auto ends = join_on_hosts(hosts, 4, hub);
  on_all(4, [&](std::size_t r) { all_reduce_ones(*ends[r], 3 << 20); });
  CHECK(hub->bytes_sent(0, 1) == 0);
  CHECK(hub->bytes_sent(3, 2) == 0);
}

TEST_CASE("rows go to each other host once") {
  const host_map hosts{0, 0, 1, 1};
  const auto hub = std::make_shared<memory_hub>(4, 1);
  auto ends = join_on_hosts(hosts, 4, hub);
  constexpr std::int64_t width = 10'000;
  on_all(4, [&](std::size_t r) {
    variable x;
    x.set(selected_rows{
      {std::int64_t(r)}, 9, random_tensor({1, width}, dtype::float32, 1)});
    all_reduce(*ends[r], x);
    CHECK(x.as_rows().rows == std::vector<std::int64_t>{0, 1, 2, 3});
  });
  CHECK(bytes_between_hosts(*hub, hosts)
        == 4 * (width * sizeof(float) + sizeof(std::int64_t)));
}

TEST_CASE("values in memory that the host shares are added where they lie") {
  auto ends = join_on_hosts({0, 0, 1, 1}, 4, 1);
  on_all(4, [&](std::size_t r) {
    auto* memory = ends[r]->memory();
    REQUIRE(memory);
    auto t = tensor::make(*memory, {100'000}, dtype::float32);
    std::ranges::fill(t.values<float>(), float(r));
    const auto* at = t.raw();
    variable x;
    x.set(std::move(t));
    all_reduce(*ends[r], x);
    CHECK(x.as_tensor().raw() == at);
    CHECK(get(x.as_tensor(), 99'999) == 6);
  });
}

TEST_CASE("without sums by host, values are added in rank order") {
  struct kind {
    host_map hosts;
    bool adds, has_neighbours;
  };
  for (const auto& [hosts, adds, has_neighbours] :
       {kind{{0, 0, 0}, true, true}, kind{{0, 1, 2}, true, false},
        kind{{0, 1, 0}, false, true}}) {
    auto ends = join_on_hosts(
      hosts, 3, std::make_shared<memory_hub>(hosts.size(), 1), adds);
    on_all(3, [&](std::size_t r) {
      const bool is_alone = !has_neighbours || (hosts[1] == 1 && r == 1);
      CHECK((ends[r]->memory() == nullptr) == is_alone);
      const float values[] = {1e8f, -1e8f, 1};
      auto t = tensor::make(host(), {5'000}, dtype::float32);
      std::ranges::fill(t.values<float>(), values[r]);
      variable x;
      x.set(t);
      all_reduce(*ends[r], x);
      CHECK(get(x.as_tensor(), 0) == 1);
    });
  }
}

TEST_CASE("processes of a host that do not find each other are named") {
  const auto hub = std::make_shared<memory_hub>(3, 1);
  std::vector<error> failures(3, error{errc::cancelled, "none"});
  const auto path = socket_path();
  on_all(3, [&](std::size_t p) {
    failures[p] = caught([&] {
      auto own = on_host(p / 2, p == 1 ? path + "-elsewhere" : path);
      own.timeout = 200ms;
      const auto ends =
        join_engine_group(std::make_unique<memory_engine>(hub, p), own);
      if (p == 2) // has no neighbour, so it may have met all
        all_reduce_ones(*ends[0], 4);
    });
  });
  CHECK(says(failures[0], "did not join in time: 1"));
  CHECK(says(failures[1], "does not listen"));
  CHECK(failures[2].code() == errc::peer_failure);
}

TEST_CASE("a process whose call breaks off tells its neighbours first") {
  played_hosts group;
  CHECK_NOTHROW(group.seen->require_intact());
  group.end.reset(); // does not wait for ever
  group.told.whole.wait();
  CHECK(group.told.whole.failure());
  CHECK(group.told.had_broken_off);
}

TEST_CASE("values of a process that has broken off are not sent on") {
  played_hosts group;
  const auto given = tensor::make(group.memory->memory(),
                                  {played_hosts::elements}, dtype::float32);
  const auto place = group.seen->place_of(given.raw());
  group.seen->break_off();
  const std::uint64_t places[] = {place, place}; // of the result and the value
  const auto told = group.memory->memory().allocate(sizeof places);
  std::memcpy(told.data(), places, sizeof places);
  nearby_signals signals{*group.seen};
  signals.tell_places(group.seen->place_of(told.data()));
  group.told.whole.wait();
  const auto why = group.told.whole.failure();
  REQUIRE(why);
  CHECK(says(*why, "process 1 of this host has broken off"));
  CHECK(group.hub->bytes_sent(0, 2) == 0);
}

TEST_CASE("a process that is killed ends the calls of all hosts, which name "
          "it") {
  if (!gloo_support().is_built)
    return skip_case("needs Gloo");
  const host_map hosts{0, 0, 1, 1};
  for (std::size_t round = 0; round < 16; ++round) {
    CAPTURE(round);
    const auto victim_number = round % 4;
    const auto own_number = (victim_number + 1 + round / 4 % 3) % 4;
    const meeting_folder at;
    const auto path = socket_path();
    const std::int64_t elements = round % 3 == 0 ? 5'000 : 3'000'000;
    const auto join = [&](std::size_t p) {
      gloo_group_options own;
      static_cast<engine_group_options&>(own) = on_host(hosts[p], path);
      own.store = make_folder_store(at.path());
      own.process = p;
      own.processes = hosts.size();
      own.timeout = 10s;
      return std::move(join_gloo_group(own).front());
    };
    const auto reduce_until_loss = [&](communicator& on) {
      const auto e = caught([&] {
        for (;;)
          all_reduce_ones(on, elements);
      });
      if (e.code() != errc::peer_failure
          || !says(e, "process " + std::to_string(victim_number) + " is lost"))
        throw std::runtime_error(e.what());
    };
    std::vector<pid_t> survivors;
    for (std::size_t p = 0; p < hosts.size(); ++p)
      if (p != victim_number && p != own_number)
        survivors.push_back(in_child([&] { reduce_until_loss(*join(p)); }));
    const pipe_pair started;
    const auto victim = in_child([&] {
      const auto end = join(victim_number);
      started.put('s');
      for (;;)
        all_reduce_ones(*end, elements);
    });
    const auto end = join(own_number);
    std::jthread killer{[&] {
      started.get<char>();
      std::this_thread::sleep_for(std::chrono::milliseconds(5 + 7 * round));
      ::kill(victim, SIGKILL);
    }};
    CHECK_NOTHROW(reduce_until_loss(*end));
    killer.join();
    CHECK(exit_code(victim) == -1);
    for (auto child : survivors)
      CHECK(exit_code(child) == 0);
  }
}

} // TEST_SUITE("comm.engine.host_groups")
