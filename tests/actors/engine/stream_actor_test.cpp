// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/stream_actor.hpp>

#include <actors/engine_rig.hpp>
#include <support/caught.hpp>
#include <support/serving_threads.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::test;

TEST_SUITE("actors.stream_actor") {

namespace {

class counted_job final : public job {
public:
  explicit counted_job(std::function<void()> act) : act_(std::move(act)) {}
  void run(worker&) override { act_(); }

private:
  std::function<void()> act_;
};

/// Two ops of a wide stream that can end only together.
void check_two_at_once(engine_rig& rig) {
  const auto s = rig.add_stream(2);
  std::atomic<int> inside{0};
  auto both = [&](step_state&) {
    ++inside;
    while (inside.load() < 2)
      std::this_thread::yield(); // only two threads together can leave
  };
  const auto a = rig.add_op(s);
  const auto b = rig.add_op(s, both);
  const auto c = rig.add_op(s, both);
  rig.connect(a, b);
  rig.connect(a, c);
  rig.wire();
  serving_threads serving{rig.queue};
  for (step_id step = 0; step < 200; ++step) {
    inside = 0;
    rig.begin(step);
    while (rig.ended().size() <= step)
      std::this_thread::yield();
  }
  CHECK(rig.ended().size() == 200);
}

} // namespace

TEST_CASE("ops made ready by an op run next, in the order of notification") {
  engine_rig rig;
  const auto s = rig.add_stream(1);
  const auto a = rig.add_op(s);
  const auto b = rig.add_op(s);
  const auto c = rig.add_op(s);
  const auto d = rig.add_op(s);
  const auto e = rig.add_op(s);
  const auto f = rig.add_op(s);
  for (auto told : {b, c, d})
    rig.connect(a, told);
  rig.connect(b, e);
  rig.connect(e, f);
  rig.wire();
  rig.begin(0);
  rig.serve();
  CHECK(rig.ran() == "a0 b0 e0 f0 c0 d0");
}

TEST_CASE("ops submitted by other threads run after ops already ready") {
  engine_rig rig;
  job_queue others{1};
  const auto s = rig.add_stream();
  const auto t = rig.add_stream(1, &others);
  const auto a = rig.add_op(
    s, [&](step_state&) { std::thread([&] { rig.serve(others); }).join(); });
  const auto b = rig.add_op(s);
  const auto c = rig.add_op(s);
  rig.connect(a, b);
  rig.connect(b, c);
  const auto other = rig.add_op(t); // d
  for (int i = 0; i < 3; ++i)
    rig.connect(other, rig.add_op(s)); // e, f, g
  rig.wire();
  rig.begin(0);
  rig.serve();
  CHECK(rig.ran() == "a0 d0 b0 c0 e0 f0 g0");
}

TEST_CASE("ready ops run in order of priority") {
  engine_rig rig;
  const auto s = rig.add_stream(1);
  const auto a = rig.add_op(s);
  for (int priority : {0, 2, 1, 2})
    rig.connect(a, rig.add_op(s, {}, priority)); // b, c, d, e
  rig.wire();
  rig.begin(0);
  rig.serve();
  CHECK(rig.ran() == "a0 c0 e0 d0 b0");
}

TEST_CASE("a stream with many ready ops yields to other jobs") {
  engine_rig rig;
  const auto s = rig.add_stream(1);
  int launched = 0;
  int seen_by_other = -1;
  counted_job other{[&] { seen_by_other = launched; }};
  const auto first = rig.add_op(s, [&](step_state&) { rig.queue.push(other); });
  for (int i = 0; i < 100; ++i)
    rig.connect(first, rig.add_op(s, [&](step_state&) { ++launched; }));
  rig.wire();
  rig.begin(0);
  rig.serve();
  CHECK(launched == 100);
  CHECK(seen_by_other >= 0);
  CHECK(seen_by_other < 50);
}

TEST_CASE("a stream of long ops yields to other jobs after each of them") {
  engine_rig rig;
  const auto s = rig.add_stream(1);
  int launched = 0;
  int pushed_at = -1;
  int seen_by_other = -1;
  counted_job other{[&] { seen_by_other = launched; }};
  const auto long_op = [&](step_state&) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    ++launched;
    if (launched == 40) { // by then the worker knows that its jobs are long
      rig.queue.push(other);
      pushed_at = launched;
    }
  };
  const auto first = rig.add_op(s);
  for (int i = 0; i < 60; ++i)
    rig.connect(first, rig.add_op(s, long_op));
  rig.wire();
  rig.begin(0);
  rig.serve();
  REQUIRE(launched == 60);
  CHECK(seen_by_other == pushed_at);
}

TEST_CASE("a stream that stays with its worker is hidden from the others") {
  engine_rig rig{2, 2};
  const auto s = rig.add_stream(1);
  const auto t = rig.add_stream(1);
  for (auto staying : {s, t})
    rig.stream_at(staying).stay_with_worker(true);
  bool known_as_short = false;
  bool seen = true;
  const auto a = rig.add_op(s);
  const auto b = rig.add_op(t);
  const auto c = rig.add_op(s, [&](step_state&) {
    known_as_short |= worker::current()->has_short_jobs();
    seen = rig.queue.others_wait(0);
  });
  const auto d = rig.add_op(s);
  rig.connect(a, b); // b's stream becomes ready while this one continues
  rig.connect(a, c);
  rig.connect(b, d);
  rig.wire();
  for (step_id step = 0; step < 10000 && seen; ++step) {
    const bool was_short = known_as_short;
    rig.begin(step);
    rig.serve();
    const auto n = std::to_string(step);
    const auto ran = rig.ran();
    CAPTURE(ran);
    // A stream of long ops looks for other work after each of them.
    const auto looked = ran == "a" + n + " b" + n + " c" + n + " d" + n;
    CHECK((ran == "a" + n + " c" + n + " b" + n + " d" + n
           || (looked && !was_short)));
  }
  // In some builds with sanitizers ops are never short.
  CHECK_FALSE((known_as_short && seen));
}

TEST_CASE("a stream of width 1 never runs two ops at a time") {
  constexpr int ops = 48;
  constexpr int threads = 3;
  engine_rig rig{2, 3};
  std::deque<job_queue> queues;
  const auto s = rig.add_stream();
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  int unguarded = 0; // a race shows as a wrong sum
  std::vector<std::uint32_t> senders;
  for (int t = 0; t < threads; ++t)
    senders.push_back(rig.add_stream(1, &queues.emplace_back(1)));
  for (int i = 0; i < ops; ++i) {
    const auto told = rig.add_op(s, [&](step_state&) {
      const auto now = ++inside;
      if (now > most)
        most = now;
      ++unguarded;
      --inside;
    });
    rig.connect(rig.add_op(senders[static_cast<std::size_t>(i % threads)]),
                told);
  }
  rig.wire();
  serving_threads serving{rig.queue};
  std::atomic<bool> over{false};
  std::vector<std::thread> others;
  for (auto& q : queues)
    others.emplace_back([&] {
      while (!over.load()) {
        rig.serve(q);
        std::this_thread::yield();
      }
    });
  constexpr step_id steps = 150;
  for (step_id step = 0; step < steps; ++step) {
    rig.begin(step);
    while (rig.ended().size() <= step)
      std::this_thread::yield();
  }
  over = true;
  for (auto& t : others)
    t.join();
  CHECK(most == 1);
  CHECK(unguarded == ops * static_cast<int>(steps));
}

TEST_CASE("a wide stream runs ops on several workers at once") {
  engine_rig rig{2, 2};
  check_two_at_once(rig);
}

TEST_CASE(
  "a wide stream that stays with a worker runs its ops like a serial one") {
  engine_rig rig{2, 2};
  const auto s = rig.add_stream(2);
  rig.stream_at(s).stay_with_worker(true);
  const auto a = rig.add_op(s);
  const auto b = rig.add_op(s);
  const auto c = rig.add_op(s);
  const auto d = rig.add_op(s);
  const auto e = rig.add_op(s);
  for (auto told : {b, c, d})
    rig.connect(a, told);
  rig.connect(b, e);
  rig.wire();
  rig.begin(0);
  rig.serve();
  CHECK(rig.ran() == "a0 b0 e0 c0 d0");
}

TEST_CASE("different seeds give different orders of ops on a wide stream") {
  const auto order_of = [](std::uint64_t seed) {
    engine_rig rig{2, 2};
    rig.shuffle_streams(seed);
    const auto s = rig.add_stream(2);
    const auto a = rig.add_op(s);
    for (int i = 0; i < 4; ++i)
      rig.connect(a, rig.add_op(s));
    rig.wire();
    rig.begin(0);
    rig.serve();
    return rig.ran();
  };
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    orders.insert(order_of(seed));
    REQUIRE(order_of(seed) == order_of(seed));
  }
  CHECK(orders.size() == 24); // all
  for (auto& order : orders)
    CHECK(order.starts_with("a0 "));
}

TEST_CASE("a shuffled wide stream runs ops on several workers at once") {
  engine_rig rig{2, 2};
  rig.shuffle_streams(1);
  check_two_at_once(rig);
}

TEST_CASE("a wide stream may stay with a worker or not while ops run") {
  for (std::uint64_t seed : {0u, 1u}) { // 1: shuffled
    engine_rig rig{2, 2};
    rig.shuffle_streams(seed);
    const auto s = rig.add_stream(2);
    std::atomic<int> launched{0};
    const auto count = [&](step_state&) { ++launched; };
    const auto first = rig.add_op(s);
    const auto last = rig.add_op(s);
    constexpr int chains = 4;
    constexpr int length = 8;
    for (int chain = 0; chain < chains; ++chain) {
      auto previous = first;
      for (int i = 0; i < length; ++i) {
        const auto next = rig.add_op(s, count);
        rig.connect(previous, next);
        previous = next;
      }
      rig.connect(previous, last);
    }
    rig.wire();
    serving_threads serving{rig.queue};
    std::atomic<bool> over{false};
    std::thread changing([&] {
      for (bool stays = true; !over; stays = !stays)
        rig.stream_at(s).stay_with_worker(stays);
    });
    constexpr step_id steps = 500;
    for (step_id step = 0; step < steps; ++step) {
      rig.begin(step);
      while (rig.ended().size() <= step)
        std::this_thread::yield();
    }
    over = true;
    changing.join();
    CHECK(launched == chains * length * static_cast<int>(steps));
  }
}

TEST_CASE("a long chain of ops on a wide stream completes") {
  engine_rig rig{2, 2};
  const auto s = rig.add_stream(2);
  auto previous = rig.add_op(s);
  for (int i = 0; i < 500; ++i) {
    const auto next = rig.add_op(s);
    rig.connect(previous, next);
    previous = next;
  }
  rig.wire();
  rig.begin(0);
  rig.serve();
  CHECK(rig.ended().size() == 1);
}

TEST_CASE("an error names both collectives if one runs out of order") {
  engine_rig rig;
  const auto s = rig.add_all_reduce();
  rig.add_op(s, {}, 0, 0);
  rig.add_op(s, {}, 0, 1);
  auto& actor = dynamic_cast<all_reduce_actor&>(rig.stream_at(s));
  actor.set_order({{1, "b"}, {0, "a"}}); // the graph does not order them
  rig.wire();
  rig.begin(0);
  rig.serve();
  CHECK(rig.ended().size() == 1);
  const auto e = rig.state(0).take_error();
  REQUIRE(e.has_value());
  CHECK(e->code() == errc::order_mismatch);
  CHECK(e->where().op_type == "a");
  CHECK(says(*e, "collective a runs when it is the turn of b"));
  rig.ran();
  actor.set_order({{0, "a"}, {1, "b"}});
  rig.begin(1);
  rig.serve();
  CHECK_FALSE(rig.state(1).take_error().has_value());
  CHECK(rig.ran() == "a1 b1");
}

} // TEST_SUITE("actors.stream_actor")
