// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/engine.hpp>

#include <actors/engine_rig.hpp>
#include <support/caught.hpp>
#include <support/serving_threads.hpp>
#include <troupe/base/event_reader.hpp>
#include <troupe/base/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

TEST_SUITE("actors.engine") {

namespace {

/// Number of different orders in which the ops of a rig run if 20 seeds shuffle
/// its messages. `build` adds streams, ops and edges.
template <class Build>
long different_orders(Build build) {
  const auto order_of = [&](std::uint64_t seed) {
    engine_rig rig;
    build(rig);
    rig.disturb({.seed = seed, .max_delay_us = 0});
    rig.wire();
    rig.begin(0);
    rig.serve();
    return rig.ran();
  };
  std::vector<std::string> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    orders.push_back(order_of(seed));
    CHECK(orders.back() == order_of(seed));
  }
  std::ranges::sort(orders);
  return std::ranges::unique(orders).begin() - orders.begin();
}

} // namespace

TEST_CASE("the last op of a diamond runs once, after both branches") {
  engine_rig rig;
  const auto s = rig.add_stream();
  const auto a = rig.add_op(s);
  const auto b = rig.add_op(s);
  const auto c = rig.add_op(s);
  const auto d = rig.add_op(s);
  rig.connect(a, b);
  rig.connect(a, c);
  rig.connect(b, d);
  rig.connect(c, d);
  rig.wire();
  for (step_id step = 0; step < 5; ++step) {
    rig.begin(step);
    rig.serve();
    const auto n = std::to_string(step);
    CHECK(rig.ran() == "a" + n + " b" + n + " c" + n + " d" + n);
    CHECK(rig.ended().size() == step + 1);
  }
}

TEST_CASE("a serial stream runs its ops in the plan's expected order") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    splitmix64 draw{seed};
    engine_rig rig;
    const auto s = rig.add_stream();
    constexpr handle_id ops = 26; // one per letter
    for (handle_id op = 0; op < ops; ++op) {
      rig.add_op(s);
      for (int edge = 0; op > 0 && edge < 2; ++edge)
        if (draw.below(3) > 0)
          rig.connect(static_cast<handle_id>(draw.below(op)), op);
    }
    rig.wire();
    for (step_id step = 0; step < 3; ++step) {
      std::string expected;
      for (auto op : rig.plan().expected_order())
        expected += (expected.empty() ? "" : " ")
                    + std::string(1, static_cast<char>('a' + op))
                    + std::to_string(step);
      rig.begin(step);
      rig.serve();
      CHECK(rig.ran() == expected);
    }
  }
}

TEST_CASE("an op runs when the last of its messages has arrived") {
  engine_rig rig;
  job_queue slow{1};
  const auto a = rig.add_op(rig.add_stream());
  const auto b = rig.add_op(rig.add_stream(1, &slow));
  const auto c = rig.add_op(rig.add_stream());
  rig.connect(a, c);
  rig.connect(b, c);
  rig.wire();
  rig.begin(0);
  rig.serve();
  CHECK(rig.ran() == "a0");
  const auto waiting = rig.messages->state_of(c, rig.state(0));
  CHECK(waiting.how_far == progress::waits);
  CHECK(waiting.messages == 1);
  CHECK(rig.messages->state_of(a, rig.state(0)).how_far == progress::is_done);
  CHECK(rig.messages->state_of(b, rig.state(0)).how_far != progress::is_done);
  rig.serve(slow);
  CHECK(rig.ran() == "b0");
  rig.serve();
  CHECK(rig.ran() == "c0");
  CHECK(rig.ended() == std::vector<step_id>{0});
}

TEST_CASE("messages of the next step wait until the previous step has run") {
  engine_rig rig{3};
  job_queue slow{1};
  const auto a = rig.add_op(rig.add_stream());
  const auto b = rig.add_op(rig.add_stream(1, &slow));
  rig.connect(a, b);
  rig.wire();
  rig.begin(0);
  rig.begin(1);
  rig.serve();
  CHECK(rig.ran() == "a0 a1"); // b has both messages and has not run
  CHECK(rig.ended().empty());
  rig.serve(slow);
  CHECK(rig.ran() == "b0 b1");
  CHECK(rig.ended() == std::vector<step_id>{0, 1});
}

TEST_CASE("several steps in flight may be started at once") {
  engine_rig rig{4};
  rig.add_op(rig.add_stream());
  rig.wire();
  for (step_id first = 0; first < 30; first += 3) {
    for (step_id s = first; s < first + 3; ++s)
      rig.begin(s);
    rig.serve();
  }
  CHECK(rig.ended().size() == 30);
}

TEST_CASE("an edge of distance 1 makes the next step wait") {
  engine_rig rig{3};
  job_queue slow{1};
  const auto a = rig.add_op(rig.add_stream());
  const auto update = rig.add_op(rig.add_stream(1, &slow));
  rig.connect(a, update);
  rig.connect(update, a, 1);
  rig.wire();
  rig.begin(0);
  rig.serve(slow); // sends the message of the step before the first
  rig.begin(1);
  rig.serve();
  CHECK(rig.ran() == "a0");
  CHECK(rig.messages->state_of(a, rig.state(1)).messages == 1);
  rig.serve(slow);
  CHECK(rig.ran() == "b0");
  rig.serve();
  CHECK(rig.ran() == "a1");
}

TEST_CASE("steps may be left out, and messages for the next one are kept") {
  for (std::uint32_t in_flight : {1u, 2u, 3u}) {
    CAPTURE(in_flight);
    engine_rig rig{in_flight};
    const auto s = rig.add_stream(), other = rig.add_stream();
    const auto a = rig.add_op(s);
    const auto b = rig.add_op(other);
    const auto c = rig.add_op(s);
    rig.connect(a, b);
    rig.connect(b, c);
    rig.connect(c, a, 1);
    rig.wire();
    const auto run = [&](step_id step) {
      rig.begin(step);
      rig.serve();
      const auto n = std::to_string(step);
      CHECK(rig.ran() == "a" + n + " b" + n + " c" + n);
    };
    run(0);
    run(1);
    step_id last = 1;
    for (step_id left_out = 0; left_out < 20; ++left_out) {
      rig.messages->renumber(last + 1, last + 1 + left_out);
      last += 1 + left_out;
      run(last);
    }
    rig.messages->renumber(last + 1, last);
    run(last); // again
    run(last + 1);
  }
}

TEST_CASE("an edge of distance 2 does not delay the first two steps") {
  engine_rig rig{3};
  job_queue slow{1};
  const auto a = rig.add_op(rig.add_stream());
  const auto late = rig.add_op(rig.add_stream(1, &slow));
  rig.connect(a, late);
  rig.connect(late, a, 2);
  rig.wire();
  for (step_id step = 0; step < 2; ++step)
    rig.begin(step);
  rig.serve(slow); // sends the messages of the steps before the first
  rig.begin(2);
  rig.serve();
  CHECK(rig.ran() == "a0 a1");
  rig.serve(slow);
  rig.serve();
  CHECK(rig.ran() == "b0 b1 a2");
  // From here on, each step waits for the one two before it, in every slot.
  for (step_id step = 3; step < 20; ++step) {
    rig.serve(slow);
    rig.begin(step);
    rig.serve();
    const auto n = std::to_string(step);
    CHECK(rig.ran() == "b" + std::to_string(step - 1) + " a" + n);
  }
}

TEST_CASE("ops after an op that throws do not run, and the step ends") {
  engine_rig rig;
  const auto s = rig.add_stream();
  auto throws = true;
  const auto a = rig.add_op(s, [&](step_state&) {
    if (throws)
      throw error(errc::out_of_range, "too much");
  });
  const auto b = rig.add_op(s);
  rig.connect(a, b);
  rig.connect(b, a, 1);
  rig.wire();
  rig.begin(0);
  rig.serve();
  CHECK(rig.ran() == "a0");
  CHECK(rig.ended() == std::vector<step_id>{0});
  const auto e = rig.state(0).take_error();
  REQUIRE(e.has_value());
  CHECK(e->code() == errc::out_of_range);
  CHECK(e->where().op == "a#0@cpu:0");
  CHECK(e->where().op_type == "a");
  CHECK(e->where().step == 0);
  throws = false;
  rig.begin(1);
  rig.serve();
  CHECK(rig.ran() == "a1 b1");
  CHECK_FALSE(rig.state(1).take_error().has_value());
}

TEST_CASE("exceptions of other types become kernel_failure errors") {
  struct unknown {};
  for (int kind : {0, 1}) {
    engine_rig rig;
    rig.add_op(rig.add_stream(), [&](step_state&) {
      if (kind == 0)
        throw std::runtime_error("of another library");
      throw unknown{};
    });
    rig.wire();
    rig.begin(0);
    rig.serve();
    const auto e = rig.state(0).take_error();
    REQUIRE(e.has_value());
    CHECK(e->code() == errc::kernel_failure);
    CHECK(e->where().op_type == "a");
    if (kind == 0)
      CHECK(says(*e, "of another library"));
  }
}

TEST_CASE("a step that fails before it starts runs no ops and ends") {
  engine_rig rig;
  const auto s = rig.add_stream();
  rig.connect(rig.add_op(s), rig.add_op(s));
  rig.wire();
  rig.admit(0);
  rig.state(0).fail(error(errc::cancelled, "first"));
  rig.state(0).fail(error(errc::io_failure, "second"));
  rig.start(0);
  rig.serve();
  CHECK(rig.ran() == "");
  CHECK(rig.ended().size() == 1);
  CHECK(rig.state(0).take_error()->code() == errc::cancelled);
}

TEST_CASE("an op runs once per step although several threads notify it") {
  constexpr std::size_t threads = 4;
  constexpr step_id steps = 300;
  engine_rig rig;
  std::deque<job_queue> queues;
  const auto joined = rig.add_op(rig.add_stream());
  for (std::size_t t = 0; t < threads; ++t)
    for (int i = 0; i < 3; ++i)
      rig.connect(rig.add_op(rig.add_stream(1, i == 0 ? &queues.emplace_back(1)
                                                      : &queues.back())),
                  joined);
  rig.wire();
  std::atomic<bool> over{false};
  std::vector<std::thread> senders;
  for (auto& q : queues)
    senders.emplace_back([&] {
      while (!over.load()) {
        rig.serve(q);
        std::this_thread::yield();
      }
    });
  for (step_id step = 0; step < steps; ++step) {
    rig.begin(step);
    while (rig.ended().size() <= step)
      rig.serve();
  }
  over = true;
  for (auto& t : senders)
    t.join();
  CHECK(rig.ended().size() == steps);
}

TEST_CASE("a withheld message stops its step until it is released") {
  engine_rig rig;
  const auto s = rig.add_stream();
  const auto a = rig.add_op(s);
  const auto b = rig.add_op(s);
  rig.connect(a, b);
  rig.disturb({.seed = {}, .withheld = message_id{a, b, 1}});
  rig.wire();
  rig.begin(0);
  rig.serve();
  rig.begin(1);
  rig.serve();
  CHECK(rig.ran() == "a0 b0 a1");
  CHECK(rig.ended() == std::vector<step_id>{0});
  rig.messages->let_go();
  rig.serve();
  CHECK(rig.ran() == "b1");
  CHECK(rig.ended() == std::vector<step_id>{0, 1});
}

TEST_CASE("different seeds give different orders of messages") {
  CHECK(different_orders([](engine_rig& rig) {
          const auto s = rig.add_stream();
          const auto a = rig.add_op(s);
          for (int i = 0; i < 4; ++i)
            rig.connect(a, rig.add_op(s));
        })
        > 3);
}

TEST_CASE("different seeds give different orders of start messages") {
  CHECK(different_orders([](engine_rig& rig) {
          const auto s = rig.add_stream();
          for (int i = 0; i < 5; ++i)
            rig.add_op(s);
        })
        > 3);
}

TEST_CASE("different seeds give different orders of messages on completion") {
  CHECK(different_orders([](engine_rig& rig) {
          const auto s = rig.add_stream();
          const auto a = rig.add_op(s);
          rig.complete_later(a);
          for (int i = 0; i < 4; ++i)
            rig.connect(a, rig.add_op(s));
        })
        > 3);
}

TEST_CASE("shuffled completions tell later steps after the current one") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    engine_rig rig;
    const auto s = rig.add_stream();
    const auto a = rig.add_op(s);
    rig.complete_later(a);
    for (int i = 0; i < 3; ++i) {
      rig.connect(a, rig.add_op(s));    // of the same step
      rig.connect(a, rig.add_op(s), 1); // of the next
    }
    rig.disturb({.seed = seed, .max_delay_us = 0});
    rig.wire();
    const level_request all{*rig.trace, trace_level::messages};
    event_reader recorded{*rig.trace};
    rig.begin(0);
    rig.serve();
    rig.begin(1);
    rig.serve();
    // The messages on completion of `a` in step 0 and the steps they are for.
    std::vector<std::uint32_t> steps;
    for (auto& e : recorded.take())
      if (e.kind == event_kind::message && e.from == a && steps.size() < 6)
        steps.push_back(e.step);
    CAPTURE(seed);
    CHECK(std::ranges::count(steps, 0u) == 3);
    CHECK(std::ranges::is_sorted(steps));
  }
}

TEST_CASE("every message that is sent is recorded, including starts") {
  engine_rig rig{3};
  const auto s = rig.add_stream();
  const auto a = rig.add_op(s);
  const auto b = rig.add_op(s);
  rig.connect(a, b);
  rig.connect(b, a, 2);
  rig.wire();
  const level_request all{*rig.trace, trace_level::messages};
  event_reader recorded{*rig.trace};
  constexpr step_id steps = 4;
  for (step_id step = 0; step < steps; ++step) {
    rig.begin(step);
    rig.serve();
  }
  const auto events = recorded.take();
  for (step_id step = 0; step < steps; ++step) {
    const auto sent = std::ranges::count_if(events, [&](const trace_event& e) {
      return e.kind == event_kind::message && e.step == step;
    });
    CHECK(sent == static_cast<long>(rig.messages->messages_per_step()));
  }
  CHECK(recorded.lost() == 0);
}

} // TEST_SUITE("actors.engine")
