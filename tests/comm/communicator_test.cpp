// SPDX-License-Identifier: Apache-2.0

// What all groups have in common.
#include "group_rig.hpp"
#include "values.hpp"

#include <troupe/base/clock.hpp>
#include <troupe/comm/communicator.hpp>
#include <troupe/comm/local/group_merge.hpp>
#include <troupe/comm/shm/join.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/part_runner.hpp>

#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace comm_test;
using namespace troupe::comm;
using troupe::test::caught;
using troupe::test::says;

TEST_SUITE("comm.communicator") {

namespace {

/// Several variables on each rank; the first `idle` of each call's ranks have
/// no value.
class random_calls {
public:
  /// @param are_whole no sum needs to be rounded
  random_calls(std::size_t size, unsigned seed, bool are_whole)
    : random_(seed), size_(size), are_whole_(are_whole) {
    for (std::size_t r = 0; r < size; ++r)
      devices_.push_back(make_cpu_device(static_cast<int>(r)));
    for (unsigned c = 0; c < 12; ++c)
      add_call();
  }

  /// Each rank makes all calls on a thread of its own; returns the results.
  template <class Group>
  std::vector<std::vector<variable>> on_threads(unsigned seed) {
    auto results = copies();
    auto ranks = Group::make(all());
    {
      std::vector<std::jthread> threads;
      for (std::size_t r = 0; r < size_; ++r)
        threads.emplace_back(
          [&, r] { run_rank(*ranks[r], results[r], seed * 31 + unsigned(r)); });
    }
    return results;
  }

  /// All ranks at once.
  std::vector<std::vector<variable>> joint() {
    auto results = copies();
    local::group_merge merge{all(), {}};
    std::vector<rank_value> values(size_);
    for (auto& c : calls_)
      for (std::size_t i = 0; i < c.count; ++i) {
        for (std::size_t r = 0; r < size_; ++r)
          values[r] = {"", &results[r][c.first + i], &results[r][c.first + i]};
        merge.run(c.kind, c.root, values);
      }
    return results;
  }

  /// True if the rank gets this variable's result.
  bool gets(std::size_t rank, std::size_t variable) const {
    const auto made = std::ranges::find_if(calls_, [=](const random_call& c) {
      return variable < c.first + c.count;
    });
    return made->kind != collective_kind::reduce || made->root == rank;
  }

private:
  struct random_call {
    collective_kind kind;
    std::size_t root, first, count;
  };

  void add_call() {
    const auto kind = static_cast<collective_kind>(random_() % 3);
    const auto root =
      kind == collective_kind::all_reduce ? 0 : random_() % size_;
    const auto count = 1 + random_() % 3;
    const auto rows = kind != collective_kind::broadcast && random_() % 4 == 0;
    calls_.push_back({kind, root, inputs_.size(), count});
    for (std::size_t i = 0; i < count; ++i) {
      auto& of_ranks = inputs_.emplace_back(size_);
      const auto elements = static_cast<std::int64_t>(1 + random_() % 900);
      const auto busy =
        kind == collective_kind::broadcast ? root : random_() % size_;
      for (std::size_t r = 0; r < size_; ++r)
        if (r == busy || random_() % 5)
          of_ranks[r] = make_value(rows, elements);
    }
  }

  variable make_value(bool rows, std::int64_t elements) {
    variable made;
    const auto seed = unsigned(random_());
    if (rows) {
      made.set(selected_rows{
        {5, 2}, 9, random_tensor({2, elements}, dtype::float32, seed)});
      return made;
    }
    auto t = random_tensor({elements}, dtype::bfloat16, seed);
    if (are_whole_)
      make_whole(t);
    made.set(std::move(t));
    return made;
  }

  std::vector<device*> all() {
    std::vector<device*> result;
    for (auto& d : devices_)
      result.push_back(d.get());
    return result;
  }

  /// The inputs of each rank, in memory of their own.
  std::vector<std::vector<variable>> copies() {
    std::vector<std::vector<variable>> result(size_);
    for (auto& of_ranks : inputs_)
      for (std::size_t r = 0; r < size_; ++r) {
        auto& to = result[r].emplace_back(of_ranks[r]);
        if (to.is_tensor())
          to.set(clone(to.as_tensor(), host()));
      }
    return result;
  }

  /// Makes the calls, at most three ahead of those that are complete.
  void run_rank(communicator& at, std::vector<variable>& vars, unsigned seed) {
    std::minstd_rand random{seed + 1};
    std::vector<std::vector<rank_value>> values(calls_.size());
    std::vector<outcome> ends(calls_.size());
    std::vector<bool> pending(calls_.size());
    const auto wait_for = [&](std::size_t c) {
      if (pending[c])
        ends[c].wait();
    };
    for (std::size_t c = 0; c < calls_.size(); ++c) {
      const auto& made = calls_[c];
      for (std::size_t i = made.first; i < made.first + made.count; ++i)
        values[c].push_back({"x", &vars[i], &vars[i]});
      for (auto pause = random() % 20; pause > 0; --pause)
        std::this_thread::yield();
      pending[c] = at.start({made.kind, made.root, values[c]}, ends[c]).state
                   == launch_status::pending;
      if (const auto ahead = random() % 4; c >= ahead)
        wait_for(c - ahead);
    }
    for (std::size_t c = 0; c < calls_.size(); ++c)
      wait_for(c);
  }

  std::minstd_rand random_;
  std::size_t size_;
  bool are_whole_;
  std::vector<std::unique_ptr<device>> devices_;
  std::vector<random_call> calls_;
  std::vector<std::vector<variable>> inputs_; // by variable and rank
};

bool same_values(const variable& a, const variable& b) {
  if (a.is_rows() && b.is_rows())
    return a.as_rows().rows == b.as_rows().rows
           && same_bits(a.as_rows().values, b.as_rows().values);
  if (a.is_tensor() && b.is_tensor())
    return same_bits(a.as_tensor(), b.as_tensor());
  return !a.has_value() && !b.has_value();
}

} // namespace

TEST_CASE_TEMPLATE("the last rank that comes merges for all, whoever it is",
                   Group, local_ranks, shm_ranks, engine_ranks) {
  rig<Group> g{3};
  for (std::size_t first = 0; first < 6; ++first) {
    const auto second = (first + 1 + first / 3) % 3;
    const auto last = 3 - first % 3 - second;
    for (std::size_t r : {0, 1, 2})
      g.put(r, double(r) + 1);
    for (auto r : {first % 3, second}) {
      const auto result = g.start(r);
      CHECK(result.state == launch_status::pending);
      CHECK(result.position == first + 1);
      CHECK(g.ends[r].times() == 0);
    }
    const auto result = g.start(last);
    CHECK(result.state == launch_status::done);
    CHECK(result.position == first + 1);
    CHECK(g.ends[last].times() == 0);
    for (auto r : {first % 3, second}) {
      CHECK(g.ends[r].times() == 1);
      CHECK(!g.ends[r].failure());
      g.ends[r].forget();
    }
    for (std::size_t r : {0, 1, 2})
      CHECK(g.got(r) == 6);
  }
}

TEST_CASE_TEMPLATE("ranks know their number and the size of the group", Group,
                   local_ranks, shm_ranks, shm_pair, engine_ranks,
                   engine_processes, engine_pair, gloo_processes,
                   host_processes, gloo_hosts) {
  rig<Group> g{3};
  for (std::size_t r : {0, 1, 2}) {
    CHECK(g.ranks[r]->rank() == r);
    CHECK(g.ranks[r]->size() == 3);
  }
  CHECK(caught([] { Group::make({}); }).code() == errc::invalid_argument);
}

TEST_CASE_TEMPLATE("one rank alone is done at once", Group, local_ranks,
                   shm_ranks, shm_pair, engine_ranks, engine_processes,
                   engine_pair, gloo_processes, host_processes, gloo_hosts) {
  rig<Group> g{1};
  g.put(0, 5);
  CHECK(g.start(0).state == launch_status::done);
  CHECK(g.got(0) == 5);
}

TEST_CASE_TEMPLATE("any order of arrival gives the bits of the joint merge",
                   Group, local_ranks, shm_ranks, shm_processes, shm_pair,
                   engine_ranks, engine_processes, engine_pair, gloo_processes,
                   host_processes, gloo_hosts) {
  for (unsigned seed = 0; seed < Group::seeds; ++seed) {
    CAPTURE(seed);
    const std::size_t size = 1 + seed % 5;
    random_calls calls{size, seed, !Group::adds_in_rank_order};
    const auto joint = calls.joint();
    const auto results = calls.on_threads<Group>(seed);
    for (std::size_t r = 0; r < size; ++r)
      for (std::size_t i = 0; i < joint[r].size(); ++i)
        CHECK((!calls.gets(r, i) || same_values(results[r][i], joint[r][i])));
  }
}

TEST_CASE_TEMPLATE("a rank can be several calls ahead", Group, local_ranks,
                   shm_ranks, shm_pair, engine_ranks, engine_processes,
                   engine_pair, gloo_processes, host_processes, gloo_hosts) {
  rig<Group> fast{2};
  constexpr std::size_t calls = 40;
  std::vector<variable> own(calls), others(calls);
  std::vector<rank_value> own_values, other_values;
  std::vector<outcome> ends(calls), other_ends(calls);
  for (std::size_t c = 0; c < calls; ++c) {
    own[c].set(random_tensor({3}, dtype::float32, unsigned(c)));
    own_values.push_back({"x", &own[c], &own[c]});
    other_values.push_back({"x", &others[c], &others[c]});
  }
  for (std::size_t c = 0; c < calls; ++c)
    CHECK(
      fast.ranks[0]
        ->start({collective_kind::all_reduce, 0, {&own_values[c], 1}}, ends[c])
        .position
      == c + 1);
  const auto waiting = fast.ranks[0]->waiting_calls(calls + 1);
  REQUIRE(waiting.size() == calls);
  for (std::size_t c = 0; c < calls; ++c)
    CHECK(waiting[c].position == c + 1);
  CHECK(fast.ranks[0]->waiting_calls(3).size() == 3);
  for (std::size_t c = 0; c < calls; ++c) {
    CHECK(fast.ranks[0]->waits_for()->position == c + 1);
    const auto state =
      fast.ranks[1]
        ->start({collective_kind::all_reduce, 0, {&other_values[c], 1}},
                other_ends[c])
        .state;
    if (!Group::is_immediate) {
      ends[c].wait();
      if (state == launch_status::pending)
        other_ends[c].wait();
    }
    CHECK(ends[c].times() == 1);
    CHECK(same_bits(others[c].as_tensor(),
                    random_tensor({3}, dtype::float32, unsigned(c))));
  }
}

TEST_CASE_TEMPLATE("values that do not fit together fail on all ranks", Group,
                   local_ranks, shm_ranks, shm_pair, engine_ranks,
                   engine_processes, engine_pair, gloo_processes,
                   host_processes, gloo_hosts) {
  rig<Group> g{3};
  for (std::size_t last = 0; last < 3; ++last)
    for (std::size_t odd = 1; odd < 3; ++odd) {
      for (std::size_t r : {0, 1, 2})
        g.put(r, 1, r == odd ? 5 : 4);
      for (std::size_t r : {0, 1, 2})
        if (r != last)
          CHECK(g.start(r).state == launch_status::pending);
      const auto text = "all_reduce: rank " + std::to_string(odd)
                        + " gives float32 [5], rank 0 float32 [4]";
      const auto e = g.failure_of(last);
      check(e, errc::shape_mismatch, text.c_str());
      CHECK(e.where().variable == "x");
      for (std::size_t r : {0, 1, 2})
        if (r != last) {
          CHECK(g.end_of(r).times() == 1);
          check(*g.ends[r].failure(), errc::shape_mismatch, text.c_str());
          g.ends[r].forget();
        }
    }
}

TEST_CASE_TEMPLATE(
  "calls that differ fail on all ranks and say what two wanted", Group,
  local_ranks, shm_ranks, shm_pair, engine_ranks, engine_processes, engine_pair,
  gloo_processes, host_processes, gloo_hosts) {
  rig<Group> g{3};
  const rank_value two[] = {{"a", &g.x[0], &g.x[0]}, {"b", &g.x[0], &g.x[0]}};
  const collective_call others[] = {
    {collective_kind::all_reduce, 0, two},
    {collective_kind::reduce, 2, {&g.values[0], 1}},
    {collective_kind::broadcast, 1, {&g.values[0], 1}}};
  const char* texts[] = {"all_reduce of a, b", "reduce of x to rank 2",
                         "broadcast of x from rank 1"};
  for (std::size_t i = 0; i < 3; ++i) {
    g.ends[2].forget();
    g.start(2);
    const auto call = "call " + std::to_string(i + 1) + ": ";
    const auto text = call + "rank 0 makes " + std::string{texts[i]}
                      + ", rank 2 all_reduce of x";
    const auto check_either = [&](const error& e) {
      CHECK(e.code() == errc::order_mismatch);
      if (Group::is_immediate)
        CHECK(e.message() == text);
      else // of any two that differ, in either order
        CHECK((says(e, call.c_str()) && says(e, texts[i])
               && says(e, "all_reduce of x")));
    };
    check_either(g.failure_of(0, others[i]));
    check_either(*g.end_of(2).failure());
    check_either(g.failure_of(1));
  }
}

TEST_CASE_TEMPLATE("ranks must agree on the root", Group, local_ranks,
                   shm_ranks, shm_pair, engine_ranks, engine_processes,
                   engine_pair, gloo_processes, host_processes, gloo_hosts) {
  rig<Group> g{2};
  for (std::size_t r : {0, 1})
    g.put(r, 1);
  g.ranks[0]->start({collective_kind::reduce, 0, {&g.values[0], 1}}, g.ends[0]);
  const auto e =
    g.failure_of(1, {collective_kind::reduce, 1, {&g.values[1], 1}});
  CHECK(e.code() == errc::order_mismatch);
  if (Group::is_immediate || e.message().starts_with("call 1: rank 1"))
    CHECK(e.message()
          == "call 1: rank 1 makes reduce of x to rank 1, rank 0 reduce of x "
             "to rank 0");
}

TEST_CASE_TEMPLATE(
  "a rank that has failed fails the call on all others, at once", Group,
  local_ranks, shm_ranks, shm_pair, engine_ranks, engine_processes, engine_pair,
  gloo_processes, host_processes, gloo_hosts) {
  rig<Group> g{3};
  const auto* text = "rank 1 has failed: a NaN";
  for (int round = 0; round < 5; ++round) {
    for (auto& end : g.ends)
      end.forget();
    g.start(0);
    g.ranks[1]->fail(broken);
    CHECK(g.end_of(0).times() == 1);
    check(*g.ends[0].failure(), errc::not_finite, text);
    CHECK(g.ends[0].failure()->where().op == "mul");
    check(g.failure_of(2), errc::not_finite, text);
    CHECK(g.ends[2].times() == 0);
  }
  g.ranks[0]->fail(broken); // more than one
  g.ranks[2]->fail(broken);
  const auto e = g.failure_of(1);
  if (Group::is_immediate || e.message().starts_with("rank 0"))
    check(e, errc::not_finite, "rank 0 has failed: a NaN");
  else
    check(e, errc::not_finite, "rank 2 has failed: a NaN");
  for (std::size_t r : {0, 1, 2})
    g.put(r, 1);
  g.run_all();
  CHECK(g.got(2) == 3);
  CHECK(g.start(0).position == 8);
}

TEST_CASE_TEMPLATE("a call that a rank gives up fails on all ranks", Group,
                   local_ranks, shm_ranks, shm_pair, engine_ranks,
                   engine_processes, engine_pair, gloo_processes,
                   host_processes, gloo_hosts) {
  rig<Group> g{3};
  for (std::size_t r : {0, 1, 2})
    g.put(r, 1);
  const auto* text = "rank 0 has failed: a NaN";
  for (ticket call = 1; call < 90; call += 3) {
    for (auto& end : g.ends)
      end.forget();
    g.start(0);
    g.start(2);
    g.ranks[0]->give_up(call + 1, call + 5, broken); // others
    g.ranks[1]->give_up(1, call, broken);            // that it has not made
    CHECK(g.ends[0].times() == 0);
    g.ranks[0]->give_up(1, call, broken);
    for (std::size_t r : {0, 2}) {
      CHECK(g.end_of(r).times() == 1);
      check(*g.ends[r].failure(), errc::not_finite, text);
    }
    check(g.failure_of(1), errc::not_finite, text);
    g.run_all();
    g.ranks[0]->give_up(1, call + 1, broken); // all have made them
    CHECK(g.got(0) == g.got(2));
    for (std::size_t r : {0, 1, 2})
      g.ranks[r]->fail(broken);
  }
}

TEST_CASE_TEMPLATE("a rank that fails many calls runs ahead of the others",
                   Group, local_ranks, shm_ranks, engine_ranks,
                   engine_processes, engine_pair, gloo_processes,
                   host_processes, gloo_hosts) {
  rig<Group> g{2};
  for (int i = 0; i < 10; ++i)
    g.ranks[1]->fail(broken);
  for (int i = 0; i < 10; ++i)
    CHECK(g.failure_of(0).code() == errc::not_finite);
  g.put(0, 1);
  g.put(1, 2);
  g.run_all();
  CHECK(g.got(0) == 3);
  CHECK(g.start(0).position == 12);
}

TEST_CASE_TEMPLATE("a call says which ranks have arrived and which are missing",
                   Group, local_ranks, shm_ranks, engine_ranks,
                   engine_processes, engine_pair, gloo_processes,
                   host_processes, gloo_hosts) {
  rig<Group> g{4};
  CHECK(!g.ranks[2]->waits_for());
  const auto before = now_ns();
  g.start(2);
  g.start(0);
  for (std::size_t r : {0, 2}) {
    auto waits = g.ranks[r]->waits_for();
    while (!Group::is_immediate && waits->arrived.size() < 2) {
      std::this_thread::yield();
      waits = g.ranks[r]->waits_for();
    }
    REQUIRE(waits);
    CHECK(waits->position == 1);
    CHECK(waits->text == "all_reduce of x");
    CHECK(waits->arrived == std::vector<std::size_t>{0, 2});
    CHECK(waits->missing == std::vector<std::size_t>{1, 3});
    CHECK(waits->since_ns >= before);
    CHECK(waits->since_ns <= now_ns());
  }
  CHECK(!g.ranks[1]->waits_for());
  g.ranks[3]->fail(broken);
  for (std::size_t r : {0, 2})
    g.end_of(r);
  for (std::size_t r = 0; r < 4; ++r)
    CHECK(!g.ranks[r]->waits_for());
}

TEST_CASE_TEMPLATE(
  "when a rank leaves, those that wait for it end with an error", Group,
  local_ranks, shm_ranks, shm_pair, engine_ranks, engine_processes, engine_pair,
  gloo_processes, host_processes, gloo_hosts) {
  const auto* text = "rank 1 has left the group: stopped by a watchdog";
  const error why{errc::cancelled, "stopped by a watchdog"};
  for (const bool came : {false, true}) {
    CAPTURE(came);
    rig<Group> g{3};
    g.start(0);
    if (came)
      g.start(1);
    g.ranks[1]->leave(why);
    check(*g.end_of(0).failure(), errc::peer_failure, text);
    CHECK(g.ends[1].times() == (came ? 1 : 0));
    if (came)
      check(*g.ends[1].failure(), errc::cancelled, "stopped by a watchdog");
    for (int call = 0; call < 4; ++call) {
      check(g.failure_of(2), errc::peer_failure, text);
      check(g.failure_of(1), errc::cancelled, "stopped by a watchdog");
      g.ranks[1]->fail(broken);
    }
    for (int call = 0; call < 4; ++call)
      check(g.failure_of(0), errc::peer_failure, text);
    g.ranks[1]->leave(broken); // it has left already
    check(g.failure_of(1), errc::cancelled, "stopped by a watchdog");
  }
}

TEST_CASE("a rank that leaves while it merges completes this call") {
  struct : part_runner {
    std::function<void()> meanwhile;
    void run(std::size_t parts, const part_function& part) override {
      meanwhile();
      for (std::size_t i = 0; i < parts; ++i)
        part(i);
    }
  } helper;
  rig<local_ranks> g{3,
                     local_group_options{.helpers = &helper, .max_parts = 2}};
  const auto refuses = [&](std::size_t rank) {
    return caught([&] { g.start(rank); }).code() == errc::peer_failure;
  };
  helper.meanwhile = [&] {
    CHECK(g.ranks[0]->waits_for()->missing.empty());
    g.ranks[2]->leave({errc::cancelled, "stopped"});
    CHECK(g.ends[0].times() == 0);
    for (int call = 0; call < 5; ++call) // which end before the first one does
      for (std::size_t r : {0, 1})
        CHECK(refuses(r));
  };
  for (std::size_t r : {0, 1, 2})
    g.put(r, 1, 1 << 18);
  g.start(0);
  g.start(1);
  CHECK(g.start(2).state == launch_status::done);
  for (std::size_t r : {0, 1}) {
    CHECK(g.ends[r].times() == 1);
    CHECK(!g.ends[r].failure());
    CHECK(g.got(r) == 3);
    CHECK(!g.ranks[r]->waits_for());
    CHECK(refuses(r));
  }
}

TEST_CASE_TEMPLATE("a communicator that is destroyed leaves the group", Group,
                   local_ranks, shm_ranks, shm_pair, engine_ranks,
                   engine_processes, engine_pair, gloo_processes,
                   host_processes, gloo_hosts) {
  rig<Group> g{2};
  g.start(0);
  g.ranks[1].reset();
  check(*g.end_of(0).failure(), errc::peer_failure,
        "rank 1 has left the group: its communicator is gone");
  g.ranks[0].reset();
}

TEST_CASE_TEMPLATE("ranks that leave and fail at random leave nobody waiting",
                   Group, local_ranks, shm_ranks, shm_processes, shm_pair,
                   engine_ranks, engine_processes, engine_pair, gloo_processes,
                   host_processes, gloo_hosts) {
  for (unsigned seed = 0; seed < Group::seeds; ++seed) {
    CAPTURE(seed);
    rig<Group> g{4};
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < 4; ++r)
      threads.emplace_back([&, r] {
        std::minstd_rand random{seed * 4 + unsigned(r) + 1};
        for (int call = 0; call < 50; ++call)
          try {
            g.ends[r].forget();
            g.put(r, 1);
            if (random() % 8 == 0)
              g.ranks[r]->fail(broken);
            else if (g.start(r).state == launch_status::pending)
              g.ends[r].wait();
            if (r == seed % 4 && random() % 40 == 0)
              g.ranks[r]->leave(broken);
          } catch (const error&) {
            // as the others chose
          }
      });
  }
}

} // TEST_SUITE("comm.communicator")
