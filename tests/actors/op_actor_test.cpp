// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/op_actor.hpp>

#include <actors/actor_rig.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

namespace {

const readiness at_slot_0{0, phase::both, false, 0};

} // namespace

TEST_SUITE("actors.op_actor") {

TEST_CASE("an op runs when the last of its messages has arrived") {
  actor_rig rig;
  auto& s = rig.add_stream(1);
  auto& op = rig.add_op(s);
  const auto x = op.add_in_edge(nullptr, nullptr, 0);
  const auto y = op.add_in_edge(nullptr, nullptr, 0);
  rig.arm();
  rig.admit(0);
  op.arrive(y, at_slot_0);
  rig.serve();
  CHECK(rig.ran() == "");
  CHECK(op.describe() == "a: step 0 waits for in-edges 1");
  op.arrive(x, at_slot_0);
  rig.serve();
  CHECK(rig.ran() == "a0");
  CHECK(rig.ended() == std::vector<step_id>{0});
  CHECK(op.describe() == "a: waits for nothing");
}

TEST_CASE("the join of a diamond runs once, behind both sides") {
  actor_rig rig;
  auto& s = rig.add_stream(1);
  auto& a = rig.add_op(s);
  auto& b = rig.add_op(s);
  auto& c = rig.add_op(s);
  auto& d = rig.add_op(s);
  rig.connect(a, b);
  rig.connect(a, c);
  rig.connect(b, d);
  rig.connect(c, d);
  rig.starts(a);
  rig.arm();
  for (step_id step = 0; step < 5; ++step) {
    rig.begin(step);
    rig.serve();
    const auto n = std::to_string(step);
    CHECK(rig.ran() == "a" + n + " b" + n + " c" + n + " d" + n);
    CHECK(rig.ended().size() == step + 1);
  }
}

TEST_CASE("two edges between the same two ops both count") {
  actor_rig rig;
  auto& s = rig.add_stream(1);
  auto& a = rig.add_op(s);
  auto& b = rig.add_op(s);
  rig.connect(a, b);
  rig.connect(a, b);
  rig.starts(a);
  rig.arm();
  for (step_id step = 0; step < 3; ++step) {
    rig.begin(step);
    rig.serve();
  }
  CHECK(rig.ran() == "a0 b0 a1 b1 a2 b2");
}

TEST_CASE("messages of the next step wait until the step before has run") {
  actor_rig rig{3};
  job_queue slow{1};
  auto& fast_stream = rig.add_stream(1);
  auto& slow_stream = rig.add_stream(1, &slow);
  auto& a = rig.add_op(fast_stream);
  auto& b = rig.add_op(slow_stream);
  rig.connect(a, b);
  rig.starts(a);
  rig.arm();
  rig.begin(0);
  rig.begin(1);
  rig.serve();
  CHECK(rig.ran() == "a0 a1"); // b has heard of both steps and run in none
  CHECK(rig.ended().empty());
  rig.serve(slow);
  CHECK(rig.ran() == "b0 b1");
  CHECK(rig.ended() == std::vector<step_id>{0, 1});
}

TEST_CASE("start messages of all steps in flight may come at once") {
  actor_rig rig{4};
  auto& s = rig.add_stream(1);
  auto& a = rig.add_op(s);
  rig.starts(a);
  rig.arm();
  for (step_id first = 0; first < 30; first += 3) {
    for (step_id s2 = first; s2 < first + 3; ++s2)
      rig.begin(s2);
    rig.serve();
  }
  CHECK(rig.ended().size() == 30);
}

TEST_CASE("an edge of distance 1 reaches the next step") {
  actor_rig rig{3};
  job_queue slow{1};
  auto& s = rig.add_stream(1);
  auto& slow_stream = rig.add_stream(1, &slow);
  auto& a = rig.add_op(s);
  auto& update = rig.add_op(slow_stream);
  rig.connect(a, update);
  rig.connect(update, a, 1);
  rig.starts(a);
  rig.arm();
  rig.begin(0); // nothing came along the edge to the first step
  rig.begin(1);
  rig.serve();
  CHECK(rig.ran() == "a0");
  CHECK(a.describe() == "a: step 1 waits for in-edges 1");
  rig.serve(slow);
  CHECK(rig.ran() == "b0");
  rig.serve();
  CHECK(rig.ran() == "a1");
}

TEST_CASE("an edge of distance 2 leaves the first two steps alone") {
  actor_rig rig{5};
  job_queue slow{1};
  auto& s = rig.add_stream(1);
  auto& slow_stream = rig.add_stream(1, &slow);
  auto& a = rig.add_op(s);
  auto& late = rig.add_op(slow_stream);
  rig.connect(a, late);
  rig.connect(late, a, 2);
  rig.starts(a);
  rig.arm();
  for (step_id step = 0; step < 3; ++step)
    rig.begin(step);
  rig.serve();
  CHECK(rig.ran() == "a0 a1");
  rig.serve(slow);
  rig.serve();
  CHECK(rig.ran() == "b0 b1 a2");
  // From here on each step waits for the one two before it, whatever the slot.
  for (step_id step = 3; step < 20; ++step) {
    rig.serve(slow);
    rig.begin(step);
    rig.serve();
    const auto n = std::to_string(step);
    CHECK(rig.ran() == "b" + std::to_string(step - 1) + " a" + n);
  }
}

TEST_CASE("behind an op that throws nothing runs, and the step ends") {
  actor_rig rig;
  auto& s = rig.add_stream(1);
  auto throws = true;
  auto& a = rig.add_op(s, [&](step_state&) {
    if (throws)
      throw error(errc::out_of_range, "too much");
  });
  auto& b = rig.add_op(s);
  rig.connect(a, b);
  rig.connect(b, a, 1);
  rig.starts(a);
  rig.arm();
  rig.begin(0);
  rig.serve();
  CHECK(rig.ran() == "a0");
  CHECK(rig.ended() == std::vector<step_id>{0});
  const auto e = rig.state(0).take_error();
  REQUIRE(e.has_value());
  CHECK(e->code() == errc::out_of_range);
  CHECK(e->where().op == "a");
  CHECK(e->where().op_type == "test");
  CHECK(e->where().step == 0);
  throws = false;
  rig.begin(1);
  rig.serve();
  CHECK(rig.ran() == "a1 b1");
  CHECK_FALSE(rig.state(1).take_error().has_value());
}

TEST_CASE("whatever an op throws becomes one error") {
  struct unknown {};
  for (int kind : {0, 1}) {
    actor_rig rig;
    auto& a = rig.add_op(rig.add_stream(1), [&](step_state&) {
      if (kind == 0)
        throw std::runtime_error("of another library");
      throw unknown{};
    });
    rig.starts(a);
    rig.arm();
    rig.begin(0);
    rig.serve();
    const auto e = rig.state(0).take_error();
    REQUIRE(e.has_value());
    CHECK(e->code() == errc::kernel_failure);
    CHECK(e->where().op == "a");
    if (kind == 0)
      CHECK(says(*e, "of another library"));
  }
}

TEST_CASE("a step that has failed already runs no op and ends") {
  actor_rig rig;
  auto& s = rig.add_stream(1);
  auto& a = rig.add_op(s);
  auto& b = rig.add_op(s);
  rig.connect(a, b);
  rig.starts(a);
  rig.arm();
  rig.admit(0);
  rig.state(0).fail(error(errc::cancelled, "first"));
  rig.state(0).fail(error(errc::io_failure, "second"));
  rig.start(0);
  rig.serve();
  CHECK(rig.ran() == "");
  CHECK(rig.ended().size() == 1);
  CHECK(rig.state(0).take_error()->code() == errc::cancelled);
}

TEST_CASE("of messages from several threads exactly one is the last") {
  constexpr int threads = 4;
  constexpr step_id steps = 300;
  actor_rig rig;
  auto& op = rig.add_op(rig.add_stream(1));
  std::vector<std::uint32_t> edges;
  for (int i = 0; i < threads * 3; ++i)
    edges.push_back(op.add_in_edge(nullptr, nullptr, 0));
  rig.arm();
  std::atomic<step_id> open{0};
  std::vector<std::thread> senders;
  for (int t = 0; t < threads; ++t)
    senders.emplace_back([&, t] {
      for (step_id step = 0; step < steps; ++step) {
        while (open.load() <= step)
          std::this_thread::yield();
        for (auto i = static_cast<std::size_t>(t); i < edges.size();
             i += threads)
          op.arrive(edges[i], {rig.state(step).slot, phase::both, false, 0});
      }
    });
  for (step_id step = 0; step < steps; ++step) {
    rig.admit(step);
    open = step + 1;
    while (rig.ended().size() <= step)
      rig.serve();
  }
  for (auto& t : senders)
    t.join();
  CHECK(rig.ended().size() == steps);
}

} // TEST_SUITE("actors.op_actor")
