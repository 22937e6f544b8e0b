// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/source/live_source.hpp>

#include <troupe/dashboard/picture/live_picture.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_SUITE("dashboard.live_source") {

namespace {

executor_options options_for(const small_net& net) {
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.parameters = net.parameters();
  return o;
}

} // namespace

TEST_CASE("a picture of a live run has each message and each run of an op") {
  const auto net = make_mlp();
  executor exe(net.main, options_for(net));
  live_source source{exe};
  const auto& head = source.head();
  live_picture picture{head.graph, {head.run.process}, head.run.workers};
  source.watch(true);
  constexpr std::uint32_t steps = 5;
  for (std::uint32_t s = 0; s < steps; ++s)
    exe.run(net.batch(s, 8));
  picture.add(source.take());

  CHECK(source.lost() == 0);
  CHECK(picture.steps_ended() == steps);
  CHECK(picture.messages() >= exe.stats().messages); // and the first starts
  for (std::size_t i = 0; i < head.graph.edges.size(); ++i) {
    const auto& e = head.graph.edges[i];
    INFO(head.graph.handles[e.from].name, " -> ", head.graph.handles[e.to].name,
         " ", e.distance);
    // Implied edges send none. Parameters are ready for a step that has not
    // begun.
    const auto messages = picture.edge_messages()[i];
    CHECK((messages == 0 || messages == steps || messages == steps + 1));
  }
  for (handle_id id = 0; id < head.graph.handles.size(); ++id) {
    INFO(head.graph.handles[id].name);
    if (head.graph.handles[id].is_op)
      CHECK(picture.runs()[id] == steps);
    CHECK(picture.states()[id] == handle_state::is_done);
    CHECK(picture.arrived()[id] == picture.needs(id));
  }
  CHECK(std::ranges::is_sorted(picture.steps(), {}, &step_record::step));
  CHECK(picture.last_ns() <= source.now_ns());
}

TEST_CASE("while nobody looks, only steps are recorded") {
  const auto net = make_mlp();
  executor exe(net.main, options_for(net));
  live_source source{exe};
  live_picture picture{source.head().graph, {0}, 2};
  source.watch(false);
  exe.run(net.batch(0, 8));
  picture.add(source.take());
  CHECK(picture.steps_ended() == 1);
  CHECK(picture.messages() == 0);
  CHECK(picture.slices().total() == 0);
  source.watch(true);
  exe.run(net.batch(1, 8));
  picture.add(source.take());
  CHECK(picture.messages() > 0);
}

TEST_CASE("a source gives what is new of the application's actors") {
  const auto net = make_mlp();
  executor exe(net.main, options_for(net));
  live_source source{exe};
  CHECK(source.take_actors().empty());
  auto& actors = exe.trace().actors();
  const auto feeder = actors.add({1, 2}, {.name = "feeder", .id = 2});
  const auto made = source.take_actors();
  REQUIRE(made.actors.size() == 1);
  CHECK(made.actors[0].second.name == "feeder");
  CHECK(source.take_actors().empty());
  actors.end(feeder, true, "lost");
  const auto ended = source.take_actors();
  REQUIRE(ended.actors.size() == 1);
  CHECK(ended.actors[0].first == feeder);
  const auto end_ns = ended.actors[0].second.end_ns.value_or(-1);
  CHECK(end_ns >= 0); // on the clock of the source
  CHECK(static_cast<std::uint64_t>(end_ns) <= source.now_ns());
}

TEST_CASE("a live run can be paused and slowed down, and not rewound") {
  const auto net = make_mlp();
  executor exe(net.main, options_for(net));
  live_source source{exe};
  source.obey(command::pause, 0ms);
  CHECK(source.state() == run_state::paused);
  source.obey(command::step, 0ms);
  CHECK(exe.run(net.batch(0, 8)).step == 0);
  CHECK(source.state() == run_state::paused);
  source.obey(command::slow, 3ms);
  CHECK(source.op_delay() == 3ms);
  source.obey(command::resume, 0ms);
  CHECK(source.state() == run_state::idle);
  CHECK(caught([&] { source.obey(command::rewind, 0ms); }).code()
        == errc::invalid_argument);
}

TEST_CASE("a run is pausing until no step is under way, and what is delayed "
          "runs") {
  const auto net = make_mlp();
  executor exe(net.main, options_for(net));
  live_source source{exe};
  live_picture picture{source.head().graph, {0}, 2};
  source.watch(true);
  source.obey(command::slow, 10min);
  const auto step = exe.submit(net.batch(0, 8));
  source.obey(command::pause, 0ms);
  CHECK(source.state() == run_state::pausing);
  std::vector<delayed_op> delayed;
  while (delayed.empty())
    delayed = source.delayed_ops();
  picture.add(source.take());
  const auto op = delayed[0].handle;
  CHECK(picture.states()[op] != handle_state::runs);
  picture.take_delayed(op, static_cast<std::uint32_t>(delayed[0].step));
  CHECK(picture.states()[op] == handle_state::runs);
  source.obey(command::slow, 0ms);
  while (exe.stats().steps <= step) {
    exe.pace().interrupt(); // an op may begin to wait after an interrupt
    std::this_thread::sleep_for(1ms);
  }
  exe.wait(step);
  CHECK(source.state() == run_state::paused);
  picture.add(source.take());
  picture.take_delayed(op, static_cast<std::uint32_t>(step)); // seen too late
  CHECK(picture.states()[op] == handle_state::is_done);
  source.obey(command::resume, 0ms);
}

TEST_CASE("why a handle waits is asked of the run itself") {
  const auto net = make_mlp();
  executor exe(net.main, options_for(net));
  live_source source{exe};
  live_picture picture{source.head().graph, {0}, 2};
  CHECK(source.why(picture, handle_id{0}).links.size() == 1);
  CHECK(source.why(picture, {}).links.empty()); // no step runs
  CHECK(caught([&] { source.why(picture, handle_id{1 << 20}); }).code()
        == errc::not_found);
}

} // TEST_SUITE("dashboard.live_source")
