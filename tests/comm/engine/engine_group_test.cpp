// SPDX-License-Identifier: Apache-2.0

// What only groups over engines have. communicator_test.cpp tests the rest.
#include "../group_rig.hpp"
#include "../layouts.hpp"
#include "../values.hpp"
#include "gloo_group.hpp"
#include "host_groups.hpp"
#include "memory_engine.hpp"
#include "seen_beats.hpp"
#include "shared_calls.hpp"
#include "silent_process.hpp"

#include <troupe/comm/engine/join.hpp>
#include <troupe/comm/engine/message.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>

#include <support/caught.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using troupe::test::caught;
using troupe::test::says;
using troupe::test::skip_case;

TEST_SUITE("comm.engine.engine_group") {

namespace {

struct memory_kind {
  static bool is_built() { return true; }
  static ends_of_group join(std::size_t processes, std::size_t ranks,
                            const engine_group_options& options = {}) {
    return join_over_memory(processes, ranks, 7, options);
  }
};

struct gloo_kind {
  static bool is_built() { return gloo_support().is_built; }
  static ends_of_group join(std::size_t processes, std::size_t ranks,
                            const engine_group_options& options = {}) {
    return join_over_gloo(processes, ranks, options);
  }
};

/// Over memory, on two hosts.
struct hosts_kind {
  static bool is_built() { return true; }
  static ends_of_group join(std::size_t processes, std::size_t ranks,
                            const engine_group_options& = {}) {
    return join_on_hosts(on_two_hosts(processes), ranks, 7);
  }
};

/// Calls `act(rank)` on a thread for each rank.
void on_threads(std::size_t ranks,
                const std::function<void(std::size_t)>& act) {
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { act(r); });
}

} // namespace

TEST_CASE_TEMPLATE("values of all sizes have the bits of one process", Kind,
                   memory_kind, gloo_kind) {
  if (!Kind::is_built())
    return skip_case("needs Gloo");
  for (std::size_t ranks = 1; ranks <= 5; ++ranks)
    for (const std::size_t processes : {ranks, (ranks + 1) / 2}) {
      CAPTURE(ranks);
      CAPTURE(processes);
      engine_group_options options;
      options.piece_bytes = 64 << 10;
      auto ends = Kind::join(processes, ranks, options);
      std::minstd_rand random{unsigned(ranks * 8 + processes)};
      std::vector<shared_call> calls;
      for (int i = 0; i < 12; ++i)
        calls.push_back(random_call(ranks, random));
      on_threads(ranks, [&](std::size_t r) {
        for (auto& c : calls) {
          const rank_value value{"x", &c.given[r], &c.given[r]};
          run(*ends[r], {c.kind, c.root, {&value, 1}});
          if (c.kind != collective_kind::reduce || r == c.root)
            CHECK(same_values(c.given[r], c.expected[r]));
        }
      });
    }
}

TEST_CASE("many values of one call are exchanged together") {
  constexpr std::size_t ranks = 3, values = 9;
  auto ends = memory_kind::join(ranks, ranks);
  std::vector<std::vector<variable>> x(values, std::vector<variable>(ranks));
  std::vector<std::vector<variable>> expected;
  for (std::size_t i = 0; i < values; ++i) {
    for (std::size_t r = 0; r < ranks; ++r)
      if (i % 3 == 0)
        x[i][r].set(selected_rows{
          {1}, 4, random_tensor({1, 700}, dtype::float32, unsigned(i + r))});
      else
        x[i][r].set(random_tensor({std::int64_t(1) << (2 * i)}, dtype::float32,
                                  unsigned(i + r)));
    expected.push_back(
      merged_in_one_process(collective_kind::all_reduce, 0, x[i]));
  }
  on_threads(ranks, [&](std::size_t r) {
    std::vector<rank_value> call;
    for (auto& of_ranks : x)
      call.push_back({"x", &of_ranks[r], &of_ranks[r]});
    run(*ends[r], {collective_kind::all_reduce, 0, call});
    for (std::size_t i = 0; i < values; ++i)
      CHECK(same_values(x[i][r], expected[i][r]));
  });
}

TEST_CASE_TEMPLATE("equal layouts are kept, different ones become plain", Kind,
                   memory_kind, hosts_kind) {
  for (const std::size_t processes : {1, 2, 3}) {
    auto ends = Kind::join(processes, 3);
    for (const std::size_t odd : {3, 0, 1, 2}) // 3: no rank
      on_threads(3, [&](std::size_t r) {
        auto x = counted(host(), r != odd);
        all_reduce(*ends[r], x);
        const auto& sum = x.as_tensor();
        CHECK(sum.is_plain() == (odd != 3));
        for (int i = 0; i < 6; ++i) {
          const auto moved = float(i % 3 * 2 + i / 3);
          CHECK(sum.data<float>()[i]
                == (odd == 3 ? 3 * float(i) : 2 * moved + float(i)));
        }
      });
  }
}

TEST_CASE_TEMPLATE("values that others use stay as they are", Kind, memory_kind,
                   hosts_kind) {
  auto ends = Kind::join(2, 2);
  for (const std::int64_t elements : {10, 20'000})
    on_threads(2, [&](std::size_t r) {
      const auto given = random_tensor({elements}, dtype::float32, 3);
      const auto before = clone(given, host());
      variable x;
      x.set(given.share());
      all_reduce(*ends[r], x);
      CHECK(get(x.as_tensor(), 9) == 2 * get(before, 9));
      CHECK(same_bits(given, before));
    });
}

TEST_CASE_TEMPLATE("ranks of a process share a result", Kind, memory_kind,
                   hosts_kind) {
  auto ends = Kind::join(2, 4);
  std::vector<const std::byte*> at(4);
  on_threads(4, [&](std::size_t r) {
    variable x;
    x.set(random_tensor({20'000}, dtype::float32, unsigned(r)));
    all_reduce(*ends[r], x);
    CHECK(x.as_tensor().is_shared());
    at[r] = x.as_tensor().raw();
  });
  CHECK(at[0] == at[2]);
  CHECK(at[1] == at[3]);
}

TEST_CASE_TEMPLATE("wrong row numbers fail on all ranks, and the group goes on",
                   Kind, memory_kind, gloo_kind, hosts_kind) {
  if (!Kind::is_built())
    return skip_case("needs Gloo");
  auto ends = Kind::join(3, 3);
  for (const std::int64_t width : {2, 5'000})
    for (const std::size_t odd : {0, 1, 2})
      on_threads(3, [&](std::size_t r) {
        variable x;
        x.set(selected_rows{
          {r == odd ? 9 : 3}, 9, random_tensor({1, width}, dtype::float32, 1)});
        const auto e = caught([&] { all_reduce(*ends[r], x); });
        CHECK(e.code() == errc::out_of_range);
        CHECK(says(e, "rank " + std::to_string(odd) + " has row 9"));
        CHECK(e.where().variable == "x");
        x.set(random_tensor({width}, dtype::float32, 1));
        all_reduce(*ends[r], x);
      });
}

TEST_CASE_TEMPLATE("texts that do not fit into one message arrive whole", Kind,
                   memory_kind, gloo_kind) {
  if (!Kind::is_built())
    return skip_case("needs Gloo");
  auto ends = Kind::join(2, 2);
  const std::string name(100'000, 'n');
  on_threads(2, [&](std::size_t r) {
    for (int i = 0; i < 20; ++i) {
      variable x;
      x.set(random_tensor({4}, dtype::float32, 1));
      const rank_value value{name, &x, &x};
      run(*ends[r], {collective_kind::all_reduce, 0, {&value, 1}});
      CHECK(get(x.as_tensor(), 0)
            == 2 * get(random_tensor({4}, dtype::float32, 1), 0));
    }
  });
}

TEST_CASE_TEMPLATE("a rank that is many calls ahead waits for nobody", Kind,
                   memory_kind, gloo_kind, hosts_kind) {
  if (!Kind::is_built())
    return skip_case("needs Gloo");
  constexpr std::size_t calls = 500;
  auto ends = Kind::join(2, 2);
  std::vector<variable> x(calls);
  std::vector<outcome> told(calls);
  std::vector<rank_value> values(calls);
  for (std::size_t c = 0; c < calls; ++c) {
    x[c].set(random_tensor({c % 50 == 0 ? 50'000 : 5}, dtype::float32, 1));
    values[c] = {"x", &x[c], &x[c]};
    CHECK(ends[0]
            ->start({collective_kind::all_reduce, 0, {&values[c], 1}}, told[c])
            .position
          == c + 1);
  }
  for (std::size_t c = 0; c < calls; ++c) {
    variable other;
    other.set(random_tensor({c % 50 == 0 ? 50'000 : 5}, dtype::float32, 1));
    all_reduce(*ends[1], other);
  }
  for (auto& t : told) {
    t.wait();
    CHECK(!t.failure());
  }
}

TEST_CASE_TEMPLATE(
  "a process without memory for a result leaves, and nobody waits", Kind,
  memory_kind, gloo_kind, hosts_kind) {
  if (!Kind::is_built())
    return skip_case("needs Gloo");
  auto ends = Kind::join(3, 3);
  const auto given = random_tensor({4 << 20}, dtype::float32, 1);
  set_host_memory_limit(host_memory_reserved() + (6 << 20));
  on_threads(3, [&](std::size_t r) {
    variable x;
    if (r == 0)
      x.set(given);
    const rank_value value{"x", &x, r < 2 ? &x : nullptr};
    const collective_call call{collective_kind::broadcast, 0, {&value, 1}};
    const auto e = caught([&] { run(*ends[r], call); });
    CHECK((e.code() == errc::out_of_memory || e.code() == errc::peer_failure));
    CHECK((r == 0 || e.code() == errc::out_of_memory || says(e, "lost: ")));
    const auto later = caught([&] { run(*ends[r], call); });
    CHECK((later.code() == errc::out_of_memory
           || later.code() == errc::peer_failure));
  });
  ends.clear();
  set_host_memory_limit(0);
}

TEST_CASE_TEMPLATE("all processes see the beats of all others", Kind,
                   memory_kind, gloo_kind, hosts_kind) {
  if (!Kind::is_built())
    return skip_case("needs Gloo");
  auto ends = Kind::join(3, 5); // ranks 0 and 3 are in one process, 1 and 4
  const std::vector<std::vector<std::size_t>> ranks{{0, 3}, {1, 4}, {2}};
  for (auto& end : ends) {
    const auto peers = end->peers();
    REQUIRE(peers.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto process = i + (i >= end->rank() % 3);
      CHECK(peers[i].ranks == ranks[process]);
      CHECK(peers[i].beats == 0);
      CHECK(peers[i].steps == 0);
      CHECK(peers[i].doing.empty());
    }
  }
  const auto text = [](std::size_t process, std::uint64_t beat) {
    return "process " + std::to_string(process) + std::string(beat % 3, '.');
  };
  for (std::uint64_t beat = 1; beat <= 20; ++beat) {
    for (std::size_t p = 0; p < 3; ++p)
      ends[p]->beat(100 * p + beat, text(p, beat));
    for (auto& end : ends) {
      REQUIRE(sees_beats(*end, beat));
      const auto peers = end->peers();
      for (std::size_t i = 0; i < 2; ++i) {
        const auto process = i + (i >= end->rank() % 3);
        CHECK(peers[i].ranks == ranks[process]);
        CHECK(peers[i].beats == beat);
        CHECK(peers[i].steps == 100 * process + beat);
        CHECK(peers[i].doing == text(process, beat));
      }
    }
  }
}

TEST_CASE("a process without others beats for nobody") {
  auto ends = memory_kind::join(1, 2);
  ends[0]->beat(1, "a step");
  CHECK(ends[0]->peers().empty());
  CHECK(ends[1]->peers().empty());
}

TEST_CASE_TEMPLATE("the first 190 bytes of a beat's text arrive", Kind,
                   memory_kind, gloo_kind) {
  if (!Kind::is_built())
    return skip_case("needs Gloo");
  auto ends = Kind::join(2, 2);
  std::uint64_t beats = 0;
  for (const std::size_t bytes : {0, 189, 190, 191, 100'000}) {
    const std::string text =
      std::string(bytes / 2, 'a') + std::string(bytes - bytes / 2, 'b');
    ends[1]->beat(7, text);
    REQUIRE(sees_beats(*ends[0], ++beats));
    CHECK(ends[0]->peers()[0].doing == text.substr(0, 190));
    CHECK(ends[1]->peers()[0].beats == 0);
  }
}

TEST_CASE_TEMPLATE("beats and calls do not disturb each other", Kind,
                   memory_kind, gloo_kind) {
  if (!Kind::is_built())
    return skip_case("needs Gloo");
  constexpr std::uint64_t beats = 200;
  auto ends = Kind::join(2, 2);
  std::vector<std::jthread> watches;
  for (auto& end : ends)
    watches.emplace_back([&] {
      for (std::uint64_t beat = 1; beat <= beats; ++beat) {
        end->beat(beat, std::to_string(beat));
        const auto seen = end->peers().at(0);
        CHECK(seen.steps == seen.beats);
        CHECK(seen.doing == (seen.beats ? std::to_string(seen.beats) : ""));
      }
      CHECK(sees_beats(*end, beats));
    });
  on_threads(2, [&](std::size_t r) {
    for (int i = 0; i < 30; ++i) {
      const auto given =
        random_tensor({i % 2 ? 10 : 50'000}, dtype::float32, unsigned(i));
      variable x;
      x.set(clone(given, host()));
      all_reduce(*ends[r], x);
      CHECK(get(x.as_tensor(), 9) == 2 * get(given, 9));
    }
  });
}

TEST_CASE("a process that sends a malformed beat is lost, and its beats stop") {
  const message_head steps{.kind = message_kind::beat, .call = 3};
  auto too_long = message_of(steps);
  too_long.resize(sizeof steps + 191);
  auto too_short = message_of(steps);
  too_short.pop_back();
  for (const auto& malformed : {too_long, too_short}) {
    const auto hub = std::make_shared<memory_hub>(2, 1);
    silent_process other{hub, 1, {}};
    const auto end = std::move(
      join_engine_group(std::make_unique<memory_engine>(hub, 0), {}).front());
    other.say(beat_of(3, "a step"));
    REQUIRE(sees_beats(*end, 1));
    other.say(malformed);
    other.say(beat_of(4, "another one"));
    variable x;
    x.set(random_tensor({4}, dtype::float32, 1));
    const auto e = caught([&] { all_reduce(*end, x); });
    CHECK(e.code() == errc::peer_failure);
    CHECK(says(e, "process 1 is lost"));
    CHECK(says(e, "sent a malformed message"));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto state = end->peers().at(0);
    CHECK(state.beats == 1);
    CHECK(state.steps == 3);
    CHECK(state.doing == "a step");
  }
}

TEST_CASE("a rank that leaves ends a call whose values do not come") {
  const auto hub = std::make_shared<memory_hub>(2, 1);
  silent_process other{hub, 1, {}};
  const auto end = std::move(
    join_engine_group(std::make_unique<memory_engine>(hub, 0), {}).front());
  variable x;
  x.set(random_tensor({50'000}, dtype::float32, 1));
  const rank_value value{"x", &x, &x};
  const collective_call call{collective_kind::all_reduce, 0, {&value, 1}};
  other.say_first(call);
  outcome told;
  end->start(call, told);
  wait_until_all_came(*end);
  end->leave(broken);
  told.wait(); // for ever if the call goes on
  REQUIRE(told.failure());
  CHECK(told.failure()->code() == errc::peer_failure);
}

TEST_CASE("a call whose values move slowly says how far they have come") {
  constexpr std::size_t piece = 1 << 16;
  const auto hub = std::make_shared<memory_hub>(2, 1);
  const engine_group_options options{.piece_bytes = piece};
  silent_process other{hub, 1, options};
  const auto end = std::move(
    join_engine_group(std::make_unique<memory_engine>(hub, 0), options)
      .front());
  variable x;
  x.set(random_tensor({std::int64_t{4 * piece}}, dtype::float32, 1));
  const rank_value value{"x", &x, &x};
  const collective_call call{collective_kind::all_reduce, 0, {&value, 1}};
  other.say_first(call);
  outcome told;
  end->start(call, told);
  const auto seen = [&](auto is_there) {
    for (;;) {
      const auto at = end->waits_for();
      if (at && at->missing.empty() && at->peer && is_there(*at))
        return *at;
      std::this_thread::yield();
    }
  };
  const auto first = seen([](auto&) { return true; });
  CHECK(first.text == "all_reduce of x");
  CHECK(first.channel == "memory");
  CHECK(first.bytes == 16 * piece);
  CHECK(first.moved == 0);
  CHECK(first.peer == 1);
  CHECK(!first.is_receiving); // the first piece is to be taken
  std::vector<std::byte> bytes(piece);
  other.receive(exchange::raw_tag, bytes);
  CHECK(seen([](auto& at) { return at.moved > 0; }).moved >= piece);
  end->leave(broken);
  told.wait();
}

TEST_CASE("processes that want different groups are all refused") {
  for (const auto& [second, text] :
       {std::pair<engine_group_options, const char*>{
          {.ranks = {0}}, "process 1 has ranks of another process"},
        {{.ranks = {2}}, "no process has rank 1"},
        {{.hosts = host_group_options{}}, "process 1 has other options"},
        {{.ranks = {56}}, "at most 56"}}) {
    const auto again = std::make_shared<memory_hub>(2, 1);
    std::vector<error> failures(2, error{errc::cancelled, "none"});
    on_threads(2, [&](std::size_t p) {
      failures[p] = caught([&] {
        join_engine_group(
          std::make_unique<memory_engine>(again, p),
          p == 0 ? engine_group_options{.timeout = std::chrono::seconds{1}}
                 : second);
      });
    });
    CHECK(failures[1].code() == errc::invalid_argument);
    CHECK(says(failures[1], text));
    CHECK(failures[0].code() != errc::cancelled); // it has failed, too
  }
}

TEST_CASE("a process that does not come is named after the timeout") {
  const auto hub = std::make_shared<memory_hub>(2, 1);
  const auto e = caught([&] {
    join_engine_group(std::make_unique<memory_engine>(hub, 0),
                      {.timeout = std::chrono::milliseconds{50}});
  });
  CHECK(e.code() == errc::peer_failure);
  CHECK(says(e, "did not join in time: 1"));
}

} // TEST_SUITE("comm.engine.engine_group")
