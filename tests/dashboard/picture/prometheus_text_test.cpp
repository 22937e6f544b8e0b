// SPDX-License-Identifier: Apache-2.0
// What Prometheus reads at /metrics.
#include <troupe/dashboard/picture/answers.hpp>

#include <troupe/dashboard/source/recorded_source.hpp>

#include <support/files.hpp>

#include "half_a_step.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::test;

TEST_SUITE("dashboard.prometheus_text") {

TEST_CASE("Prometheus gets types, labels and escaped names") {
  shown s;
  s.trace.run.command = "train \"a\\b\"\nc";
  s.picture.add(step_record{0, 2, 0.5, 1000.0, 0.125});
  const auto text = prometheus_text(s.picture, s.trace.run, s.state);
  const auto has = [&](const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has("# TYPE troupe_steps_total counter\n"));
  CHECK(has("troupe_steps_total{rank=\"0\"} 0\n"));
  CHECK(has("troupe_loss{rank=\"0\"} 0.5\n"));
  CHECK(has("troupe_learning_rate{rank=\"0\"} 0.125\n"));
  CHECK(has("troupe_memory_bytes{rank=\"0\",device=\"cpu:0\"} 400\n"));
  CHECK(has("command=\"train \\\"a\\\\b\\\"\\nc\""));
  CHECK(has("# TYPE troupe_worker_busy_seconds_total counter\n"));
  CHECK(has("troupe_worker_busy_seconds_total{rank=\"0\",worker=\"1\"} "));
}

TEST_CASE("samples per second are those of the latest ten steps") {
  live_picture picture{two_ops().graph, {0}, 2};
  // Of two in flight, one ends right after the other: 1000 samples per second.
  for (std::uint32_t step = 0; step < 20; ++step)
    picture.add(step_record{step, 1, 0.5, step % 2 == 0 ? 550.0 : 5500.0, {}});
  CHECK(contains(prometheus_text(picture, {}, {}),
                 "troupe_samples_per_second{rank=\"0\"} 1000\n"));
  picture.add(step_record{20, 1, 0.5, {}, {}}); // one that is not known
  CHECK(contains(prometheus_text(picture, {}, {}),
                 "troupe_samples_per_second{rank=\"0\"} 1000\n"));
  for (const auto& one : picture.steps())
    if (one.step % 2 == 1)
      CHECK(one.samples_per_s.value() == doctest::Approx(1000));
  CHECK_FALSE(picture.steps().back().samples_per_s.has_value());
}

TEST_CASE("a step that took no time counts among those of a second") {
  live_picture picture{two_ops().graph, {0}, 2};
  for (std::uint32_t step = 0; step < 10; ++step)
    picture.add(step_record{step, 1, 0.5, step % 2 == 0 ? 500.0 : 0.0, {}});
  CHECK(contains(prometheus_text(picture, {}, {}),
                 "troupe_samples_per_second{rank=\"0\"} 1000\n"));
}

TEST_CASE("what is of one rank has its label, what is of all has none") {
  recorded_source source{two_ranks()};
  live_picture picture{source.head().graph, {0, 1}, source.head().run.workers};
  picture.add(source.take());
  const auto text =
    prometheus_text(picture, source.head().run, {}, source.ranks());
  const auto has = [&](const std::string& part) {
    return contains(text, "troupe_" + part);
  };
  CHECK(has("info{rank=\"0\",version="));
  CHECK(has("info{rank=\"1\",version="));
  CHECK(has("memory_bytes{rank=\"0\",device=\"cpu:0\"} "));
  CHECK(has("memory_peak_bytes{rank=\"1\",device=\"cpu:1\"} "));
  CHECK(has("worker_busy_seconds_total{rank=\"0\",worker=\"0\"} "));
  CHECK(has("worker_busy_seconds_total{rank=\"1\",worker=\"0\"} "));
  CHECK(has("steps_under_way 0\n"));
  CHECK(has("op_seconds_total{type=\"send\"} "));
}

TEST_CASE("Prometheus can compute the mean time of a step") {
  auto t = two_ops();
  live_picture picture{t.graph, {0}, 2};
  for (std::uint32_t step = 0; step < 3;
       ++step) // each begins in the one before
    event_list{t}.on(0, step).add(
      step == 0 ? 0 : 1'000'000'000ull * step - 500'000'000,
      event_kind::step_begin);
  for (std::uint32_t step = 0; step < 3; ++step)
    event_list{t}.on(0, step).add(1'000'000'000ull * (step + 1),
                                  event_kind::step_end);
  std::ranges::stable_sort(t.events, {}, &trace_event::time);
  picture.add(t.events);
  const auto text = prometheus_text(picture, {}, {});
  CHECK(contains(text, "troupe_steps_total{rank=\"0\"} 3\n"));
  CHECK(contains(text, "troupe_step_seconds_total{rank=\"0\"} 3\n"));
}

TEST_CASE("messages of steps are counted also while none is recorded") {
  auto t = two_ops();
  live_picture picture{t.graph, {0}, 2};
  for (std::uint32_t step = 0; step < 3; ++step)
    event_list{t}
      .on(0, step)
      .add(1000 * step, event_kind::step_begin)
      .add(1000 * step + 500, event_kind::step_end);
  picture.add(t.events);
  CHECK(picture.messages() == 0);
  CHECK(head_answer(picture, {})["messages"]
        == 3 * picture.messages_per_step());
  CHECK(actors_answer(picture, {t.run}, {})["messages"]
        == 3 * picture.messages_per_step());
  const auto per_step = picture.messages_per_step();
  REQUIRE(per_step > 0);
  CHECK(contains(prometheus_text(picture, {}, {}),
                 "troupe_messages_total{rank=\"0\"} "
                   + std::to_string(3 * per_step) + "\n"));
}

TEST_CASE("what nobody has recorded is no series of Prometheus") {
  auto t = two_ops();
  live_picture picture{t.graph, {0}, 2};
  const auto has = [&](const std::string& name) {
    return contains(prometheus_text(picture, {}, {}), "troupe_" + name);
  };
  event_list{t}.add(0, event_kind::step_begin).add(500, event_kind::step_end);
  picture.add(t.events);
  CHECK(has("steps_total"));
  for (const auto* name :
       {"memory_bytes", "memory_peak_bytes", "worker_busy_seconds_total",
        "collective_", "op_seconds_total"}) {
    INFO(name);
    CHECK_FALSE(has(name));
  }
  t.events.clear();
  event_list{t}.run(600, 700, conv);
  picture.add(t.events);
  for (const auto* name :
       {"memory_bytes", "memory_peak_bytes", "worker_busy_seconds_total",
        "collective_calls_total"}) {
    INFO(name);
    CHECK(has(name));
  }
}

TEST_CASE("Prometheus gets the seconds of ops by their type") {
  auto t = two_ops();
  t.graph.handles.push_back(
    {"conv2d#2@cpu:0", "conv2d", true, false, 0, "compute", ""});
  live_picture picture{t.graph, {0}, 1};
  event_list{t}
    .run(1'000'000'000, 3'000'000'000, conv)
    .add(3'500'000'000, event_kind::completion, conv)
    .run(4'000'000'000, 5'000'000'000, 3)
    .add(6'000'000'000, event_kind::run_begin, update);
  picture.add(t.events);
  const auto text = prometheus_text(picture, {}, {});
  CHECK(contains(text,
                 "troupe_op_seconds_total{rank=\"0\",type=\"conv2d\"} 3.5\n"));
  CHECK(contains(text,
                 "troupe_op_seconds_total{rank=\"0\",type=\"momentum\"} 0\n"));
}

TEST_CASE("types of ops beyond the first ones are one series of Prometheus") {
  auto t = two_ops();
  for (std::uint32_t i = 0; i < 300; ++i)
    t.graph.handles.push_back(
      {"own", "own_" + std::to_string(i), true, false, 0, "compute", ""});
  live_picture picture{t.graph, {0}, 1};
  for (handle_id id = 3; id < 303; ++id)
    event_list{t}.run(1'000'000'000, 2'000'000'000, id);
  picture.add(t.events);
  const auto text = prometheus_text(picture, {}, {});
  // Besides the two types of the graph.
  CHECK(contains(text, "type=\"(other)\"} 102\n"));
}

TEST_CASE("counters of Prometheus never fall, also while an op runs") {
  auto t = two_ops();
  live_picture picture{t.graph, {0}, 1};
  board_state state;
  const auto busy = [&] {
    return contains(prometheus_text(picture, {}, state),
                    "troupe_worker_busy_seconds_total{rank=\"0\",worker=\"0\"} "
                    "2\n");
  };
  event_list{t}.run(1'000'000'000, 3'000'000'000, conv);
  event_list{t}.add(4'000'000'000, event_kind::run_begin, conv);
  picture.add(t.events);
  state.now_ns = 5'000'000'000;
  CHECK(busy());
  state.now_ns = 6'000'000'000; // nobody scraped meanwhile, or another did
  CHECK(busy());
}

TEST_CASE("Prometheus gets the application's actors, added up by name") {
  auto t = two_actors();
  t.actors.push_back({.name = "feeder", .id = 20, .is_recorded = true});
  recorded_source source{{std::move(t)}};
  live_picture picture{source.head().graph, {0}, 2};
  picture.add(source.take());
  picture.add(source.take_actors());
  board_state state;
  const auto has = [&](const std::string& line) {
    return contains(prometheus_text(picture, {}, state), line + "\n");
  };
  state.now_ns = 699;
  CHECK(has("# TYPE troupe_actors gauge"));
  CHECK(has("troupe_actors{rank=\"0\",name=\"feeder\"} 2"));
  CHECK(has("troupe_actor_failures_total{rank=\"0\",name=\"feeder\"} 0"));
  CHECK(has("troupe_actor_messages_total{rank=\"0\",name=\"feeder\"} 1"));
  state.now_ns = 700;
  CHECK(has("troupe_actors{rank=\"0\",name=\"feeder\"} 1"));
  CHECK(has("troupe_actor_failures_total{rank=\"0\",name=\"feeder\"} 1"));
  // Whoever only sends is not recorded.
  CHECK_FALSE(contains(prometheus_text(picture, {}, state), "name=\"main\""));
}

TEST_CASE("Prometheus gets a bounded number of names of actors") {
  auto t = two_ops();
  for (std::uint64_t i = 0; i < 300; ++i)
    t.actors.push_back(
      {.name = "session " + std::to_string(i), .id = i, .is_recorded = true});
  recorded_source source{{std::move(t)}};
  live_picture picture{source.head().graph, {0}, 2};
  picture.add(source.take_actors());
  const auto text = prometheus_text(picture, {}, {});
  CHECK(contains(text, "troupe_actors{rank=\"0\",name=\"session 99\"} 1\n"));
  CHECK(contains(text, "troupe_actors{rank=\"0\",name=\"(other)\"} 200\n"));
  CHECK_FALSE(contains(text, "session 100"));
}

} // TEST_SUITE("dashboard.prometheus_text")
