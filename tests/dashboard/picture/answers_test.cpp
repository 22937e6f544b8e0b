// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/picture/answers.hpp>

#include <troupe/dashboard/source/recorded_source.hpp>

#include "frame_reader.hpp"
#include "half_a_step.hpp"
#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <span>
#include <string>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::test;

TEST_SUITE("dashboard.answers") {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

} // namespace

TEST_CASE("the graph has each handle with its place and layer") {
  const shown s;
  const auto g = graph_answer(s.picture, s.state);
  CHECK(g["run"] == "abc");
  REQUIRE(g["handles"].size() == 3);
  CHECK(g["handles"][conv]["name"] == "conv2d#0@cpu:0");
  CHECK(g["handles"][conv]["needs"] == 1);
  CHECK(g["handles"][update]["collective"] == true);
  CHECK(g["handles"][conv]["x"].get<double>()
        < g["handles"][image]["x"].get<double>());
  CHECK(g["edges"].dump() == "[[0,1,0],[1,2,0],[2,0,1]]");
  std::size_t grouped = 0;
  for (const auto& layer : g["layers"])
    grouped += layer["handles"].size();
  CHECK(grouped == 3);
}

TEST_CASE("a frame has states, counts, and what is new") {
  shown s;
  frame_maker frames;
  const frame_reader first{frames.next(s.picture, s.state)};
  CHECK(first.first() % 8 == 0);
  CHECK(first.head["state"] == "running");
  CHECK(first.head["step"] == 0);
  CHECK(first.head["time_ms"] == 5.0);
  CHECK(first.head["workers"][1]["op"] == update);
  CHECK(first.head["workers"][0]["op"] == -1);
  CHECK(first.values<std::uint8_t>("state", "u8")
        == std::vector<std::uint8_t>{3, 3, 2});
  CHECK(first.values<std::uint16_t>("arrived", "u16")
        == std::vector<std::uint16_t>{1, 1, 1});
  CHECK(first.values<std::uint32_t>("edge_messages", "u32")
        == std::vector<std::uint32_t>{1, 1, 1});
  CHECK(first.values<double>("slice_ms", "f64") == std::vector<double>{2});

  s.trace.events.clear();
  event_list{s.trace}
    .on(1)
    .add(5'000'000, event_kind::run_end, update)
    .add(6'000'000, event_kind::step_end);
  s.picture.add(s.trace.events);
  const frame_reader second{frames.next(s.picture, s.state)};
  CHECK(second.values<std::uint32_t>("slice_handle", "u32")
        == std::vector<std::uint32_t>{update});
  CHECK(second.values<std::uint32_t>("step_number", "u32")
        == std::vector<std::uint32_t>{0});
  CHECK(second.values<double>("step_ms", "f64") == std::vector<double>{6});
  CHECK(std::isnan(second.values<double>("step_loss", "f64")[0]));
}

TEST_CASE("a frame has the newest slices if there are too many") {
  auto t = two_ops();
  live_picture picture{t.graph, {0}, 2};
  for (std::uint64_t i = 0; i < frame_maker::most_slices + 10; ++i)
    event_list{t}.run(1000 * i, 1000 * i + 500, conv);
  picture.add(t.events);
  frame_maker frames;
  const frame_reader f{frames.next(picture, {})};
  const auto begins = f.values<double>("slice_begin", "f64");
  REQUIRE(begins.size() == frame_maker::most_slices);
  CHECK(begins.front() == doctest::Approx(10 * 1000 / 1e6));
}

TEST_CASE("a step is told again when its loss is known") {
  auto t = two_ops();
  live_picture picture{t.graph, {0}, 2};
  event_list{t}.add(0, event_kind::step_begin).add(9, event_kind::step_end);
  picture.add(t.events);
  frame_maker frames;
  frames.next(picture, {});
  picture.add(step_record{0, {}, 0.25, 10.0, {}});
  const frame_reader f{frames.next(picture, {})};
  CHECK(f.values<double>("step_loss", "f64") == std::vector<double>{0.25});
}

TEST_CASE("numbers that are none are null in a series, and marked") {
  auto t = two_ops();
  live_picture picture{t.graph, {0}, 2};
  picture.add(step_record{0, 1, 0.5, 10.0, 0.1});
  picture.add(step_record{1, 1, nan, 10.0, {}});
  picture.add(step_record{2, {}, 0.5, 10.0, {}}); // under way
  const auto series = series_answer(picture);
  CHECK(series["loss"].dump() == "[0.5,null,0.5]");
  CHECK(series["ms"].dump() == "[1.0,1.0,null]");
  CHECK(series["learning_rate"].dump() == "[0.1,null,null]");
  CHECK(head_answer(picture, {})["nan_steps"].dump() == "[1]");
}

TEST_CASE(
  "of many steps without a loss, the first one and the newest are told") {
  auto t = two_ops();
  live_picture picture{t.graph, {0}, 2};
  for (std::uint32_t step = 0; step < 100; ++step)
    picture.add(step_record{step, 1, step < 5 ? 0.5 : nan, {}, {}});
  picture.add(step_record{99, 1, nan, {}, {}}); // told again
  const auto head = head_answer(picture, {});
  REQUIRE(head["nan_steps"].size() == 64);
  CHECK(head["nan_steps"][0] == 5);
  CHECK(head["nan_steps"][1] == 37);
  CHECK(head["nan_steps"][63] == 99);
  CHECK(head["nan_count"] == 95);
}

TEST_CASE("the first step without a loss is told when its record is gone") {
  auto t = two_ops();
  live_picture picture{t.graph, {0}, 2};
  for (std::uint32_t step = 0; step < live_picture::kept_steps + 2; ++step)
    picture.add(step_record{step, 1, step == 1 ? nan : 0.5, {}, {}});
  CHECK(picture.steps().front().step == 2);
  CHECK(head_answer(picture, {})["nan_steps"].dump() == "[1]");
}

TEST_CASE("a collective says who is missing, and since when") {
  auto t = two_ops();
  t.graph.devices = {"cpu:0", "cpu:1"};
  t.graph.handles.push_back({"other@cpu:1", "other", false, false, 1, "", ""});
  t.graph.edges.push_back({3, update, 0});
  live_picture picture{t.graph, {0}, 2};
  event_list{t}.add(1000, event_kind::arrival, update, image, 0);
  picture.add(t.events);
  const auto all = collectives_answer(picture, 5000);
  REQUIRE(all.size() == 1);
  CHECK(all[0]["arrived"].dump() == R"(["cpu:0"])");
  CHECK(all[0]["missing"].dump() == R"(["cpu:1"])");
  CHECK(all[0]["values"].dump() == R"(["a,\"b\"","other"])");
  CHECK(all[0]["waiting_ns"] == 4000);
}

TEST_CASE("in a job, a collective under way says which ranks are missing") {
  const auto t = two_ranks()[0];
  const live_picture picture{t.graph, {0}, 1}; // has seen no event of it
  actors::collective_wait wait{sum_of_0, 7, {}};
  wait.call.arrived = {0};
  wait.call.missing = {1};
  wait.call.since_ns = 10'000;
  const auto all = collectives_answer(picture, 0, {{wait}, 12'500});
  REQUIRE(all.size() == 1);
  CHECK(all[0]["handle"] == sum_of_0);
  CHECK(all[0]["step"] == 7);
  CHECK(all[0]["devices"].dump() == R"(["cpu:0","cpu:1"])");
  CHECK(all[0]["arrived"].dump() == R"(["cpu:0"])");
  CHECK(all[0]["missing"].dump() == R"(["cpu:1"])");
  CHECK(all[0]["arrived_ranks"].dump() == "[0]");
  CHECK(all[0]["missing_ranks"].dump() == "[1]");
  CHECK(all[0]["waiting_ns"] == 2'500);
}

TEST_CASE("in a job, all ranks have arrived at a collective that is over") {
  auto t = two_ranks()[0];
  live_picture picture{t.graph, {0}, 1};
  event_list{t}
    .on(0, 2)
    .add(5000, event_kind::arrival, sum_of_0, send_op, 0)
    .add(5200, event_kind::merge_end, sum_of_0);
  picture.add(t.events);
  const auto all = collectives_answer(picture, 6000);
  REQUIRE(all.size() == 1);
  CHECK(all[0]["arrived_ranks"].dump() == "[0,1]");
  CHECK(all[0]["missing"].empty());
  CHECK(all[0]["waiting_ns"] == 0);
  CHECK(all[0]["last_ns"] == 200);
}

TEST_CASE("in a job, a collective behind one that waits has all ranks, too") {
  auto t = two_ranks()[0];
  t.graph.handles.push_back(
    {"all_reduce#4@cpu:0", "all_reduce", true, true, 0, "collective", ""});
  const handle_id behind = 4;
  live_picture picture{t.graph, {0}, 1};
  t.events.clear();
  event_list{t}.on(0, 7).add(5000, event_kind::arrival, behind, send_op, 0);
  picture.add(t.events);
  const auto unknown = collectives_answer(picture, 6000);
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0]["devices"].dump() == R"(["cpu:0","cpu:1"])");
  CHECK(unknown[0]["arrived_ranks"].dump() == "[0]");
  CHECK(unknown[0]["missing_ranks"].dump() == "[1]");
  CHECK(unknown[0]["waiting_ns"] == 1000);

  t.graph.devices.push_back("cpu:2");
  t.graph.process_of_device.push_back(2);
  live_picture of_three{t.graph, {0}, 1};
  of_three.add(t.events);
  actors::collective_wait first{sum_of_0, 7, {}};
  first.call.arrived = {0, 2};
  first.call.missing = {1};
  const auto known = collectives_answer(of_three, 6000, {{first}, 0});
  REQUIRE(known.size() == 2);
  CHECK(known[1]["handle"] == behind);
  CHECK(known[1]["devices"].size() == 3);
  CHECK(known[1]["arrived_ranks"].dump() == "[0]");
  CHECK(known[1]["missing_ranks"].dump() == "[1]");
}

TEST_CASE("memory names who holds most") {
  const shown s;
  const auto all = memory_answer(s.picture, 5);
  CHECK(all[0]["bytes"] == 400);
  CHECK(all[0]["holders"][0]["bytes"] == 400);
  CHECK(memory_answer(s.picture, 0)[0]["holders"].empty());
}

TEST_CASE("actors are counted by the graph") {
  const shown s;
  const auto a = actors_answer(s.picture, {s.trace.run}, s.state);
  CHECK(a["op_actors"] == 2);
  CHECK(a["variable_actors"] == 1);
  CHECK(a["stream_actors"] == 2);
  CHECK(a["messages"] == 0); // of steps that have ended
}

TEST_CASE("a rank counts and lists its own part of the job") {
  const auto ranks = two_ranks();
  const live_picture first{ranks[0].graph, {0}, 1};
  const auto own = actors_answer(first, {ranks[0].run}, {});
  CHECK(own["op_actors"] == 2);
  CHECK(own["variable_actors"] == 0);
  CHECK(own["stream_actors"] == 2);
  CHECK(own["actors"] == 4);
  CHECK(own["nodes"][1]["state"] == "elsewhere");
  const auto memory = memory_answer(first, 5);
  REQUIRE(memory.size() == 1);
  CHECK(memory[0]["device"] == "cpu:0");
  CHECK(head_answer(first, {})["memory"].size() == 1);

  const live_picture both{ranks[0].graph, {0, 1}, 2};
  const auto all = actors_answer(both, {ranks[0].run, ranks[1].run}, {});
  CHECK(all["op_actors"] == 4);
  CHECK(all["nodes"][0]["state"] == "here");
  CHECK(all["nodes"][1]["state"] == "here");
  CHECK(memory_answer(both, 5).size() == 2);
}

TEST_CASE("the queue of a stream is its ready ops") {
  const shown s;
  const auto all = actors_answer(s.picture, {s.trace.run}, s.state)["streams"];
  REQUIRE(all.size() == 2);
  CHECK(all[0]["stream"] == "collective");
  CHECK(all[0]["running"] == 1);
  CHECK(all[1]["stream"] == "compute");
  CHECK(all[1]["ready"] == 0);

  live_picture ready{s.trace.graph, {0}, 2};
  auto t = two_ops();
  event_list{t}.add(0, event_kind::step_begin).message(10, update, conv);
  ready.add(t.events);
  CHECK(actors_answer(ready, {t.run}, {})["streams"][1]["ready"] == 1);
  live_picture of_other{[&] {
                          t.graph.process_of_device = {1};
                          return t.graph;
                        }(),
                        {0},
                        2};
  const auto elsewhere = actors_answer(of_other, {t.run}, {});
  CHECK(elsewhere["streams"].empty());
  CHECK(elsewhere["stream_actors"] == 0);
}

TEST_CASE("the application's actors have mailboxes, and failed ones reasons") {
  const auto t = two_actors();
  recorded_source source{{t}};
  live_picture picture{t.graph, {0}, 2};
  board_state state;
  picture.add(source.take_actors());
  picture.add(std::span{t.events}.first(5));
  state.now_ns = 500;
  const auto before = actors_answer(picture, {t.run}, state);
  CHECK(before["application_actors"] == 3);
  CHECK(before["errors"].empty()); // it will fail at 700
  const auto& feeder = before["application"][0];
  CHECK(feeder["name"] == "feeder");
  CHECK(feeder["id"] == 12);
  CHECK(feeder["state"] == "running");
  CHECK(feeder["mailbox"] == 0);
  CHECK(feeder["message"] == "('feed')");
  const auto& reporter = before["application"][1];
  CHECK(reporter["state"] == "waiting");
  CHECK(reporter["mailbox"] == 4); // three, and the skipped one
  CHECK(reporter["longest_mailbox"] == 4);
  CHECK(reporter["received"] == 1);
  CHECK(reporter["handled"] == 0);
  CHECK(reporter["skipped"] == 1);
  const auto& main = before["application"][2];
  CHECK(main["state"] == "sender");
  CHECK(main["mailbox"].is_null());

  picture.add(std::span{t.events}.subspan(5));
  state.now_ns = 800;
  const auto after = actors_answer(picture, {t.run}, state);
  CHECK(after["application"][0]["state"] == "failed");
  CHECK(after["application"][0]["reason"] == "no more data");
  CHECK(after["errors"].dump() == R"(["feeder#12: no more data"])");
}

TEST_CASE("when a run has ended, so have its actors, whatever the time") {
  const auto t = two_actors();
  recorded_source source{{t}};
  live_picture picture{t.graph, {0}, 2};
  picture.add(source.take_actors());
  board_state state;
  state.now_ns = 600; // of the last event
  state.state = run_state::ended;
  const auto a = actors_answer(picture, {t.run}, state);
  CHECK(a["application"][0]["state"] == "failed");
}

TEST_CASE("of many actors, those that have failed are told") {
  auto t = two_ops();
  for (std::uint64_t i = 0; i < 2000; ++i)
    t.actors.push_back({.name = "one", .id = i});
  t.actors[1500].end_ns = 0;
  t.actors[1500].has_failed = true;
  recorded_source source{{t}};
  live_picture picture{t.graph, {0}, 2};
  picture.add(source.take_actors());
  const auto a = actors_answer(picture, {t.run}, {});
  CHECK(a["application_actors"] == 2000);
  CHECK(a["application"].size() == 500);
  CHECK(a["application"][0]["id"] == 1500);
}

TEST_CASE("why a handle waits ends at what runs") {
  shown s;
  s.trace.events.clear();
  const auto chain = why_in(s.picture);
  REQUIRE(chain.links.size() == 1);
  CHECK(chain.links[0].handle == update);
  CHECK(chain.links[0].how_far == actors::progress::runs);
  CHECK(chain.links[0].worker == 1);

  live_picture waiting{s.trace.graph, {0}, 2};
  event_list{s.trace}
    .add(0, event_kind::step_begin)
    .add(10, event_kind::run_begin, conv);
  waiting.add(s.trace.events);
  const auto two = why_in(waiting, update);
  REQUIRE(two.links.size() == 3);
  CHECK(two.links[0].how_far == actors::progress::waits);
  CHECK(two.links[1].handle == image);
  CHECK(two.links[2].handle == conv);
  CHECK(why_answer(two)["links"][2]["state"] == "running");
}

TEST_CASE("a paused run says so, and with which op its next step begins") {
  shown s;
  const auto next = paused_answer(s.picture, {});
  REQUIRE(next["links"].size() == 1);
  CHECK(next["links"][0]["handle"] == conv);
  CHECK(next["links"][0]["step"] == 1);
  CHECK(next["links"][0]["state"] == "waiting");
  CHECK(next["text"]
        == "the run is paused: step 1 begins when somebody resumes it or lets "
           "a step through; conv2d#0@cpu:0, step 1: waits for 1 of 1 message");

  const live_picture fresh{s.trace.graph, {0}, 2};
  CHECK(paused_answer(fresh, {})["text"].get<std::string>().starts_with(
    "the run is paused: the first step begins"));
  const auto of_handle = paused_answer(s.picture, why_in(s.picture, image));
  CHECK(of_handle["links"][0]["handle"] == image);
  CHECK(of_handle["text"].get<std::string>().ends_with(": is done"));
}

TEST_CASE("why a collective waits names the ranks that are missing") {
  actors::wait_chain chain;
  chain.links.push_back({.handle = sum_of_0,
                         .name = "all_reduce#2@cpu:0",
                         .step = 7,
                         .how_far = actors::progress::launched,
                         .stream = "collective"});
  chain.call.emplace();
  chain.call->text = "all_reduce of w@GRAD";
  chain.call->arrived = {0};
  chain.call->missing = {1, 2};
  const auto why = why_answer(chain);
  CHECK(
    why["text"]
    == "all_reduce#2@cpu:0, step 7: was launched on stream collective and "
       "is not complete; all_reduce#2@cpu:0 (all_reduce of w@GRAD) waits for "
       "ranks 1, 2; rank 0 has arrived");
  CHECK(why["missing_ranks"].dump() == "[1,2]");
  CHECK(why_answer({})["missing_ranks"].empty());
}

TEST_CASE("why a ready op waits names what the workers run") {
  actors::wait_chain chain;
  chain.links.push_back({.handle = conv,
                         .name = "conv2d#0@cpu:0",
                         .how_far = actors::progress::is_ready,
                         .stream = "compute"});
  chain.busy = {{1, "relu#3@cpu:0"}};
  CHECK(why_answer(chain)["text"]
        == "conv2d#0@cpu:0, step 0: is ready and waits for stream compute; "
           "worker 1 runs relu#3@cpu:0");
}

TEST_CASE("a graph whose handles wait in a circle has an end too") {
  trace::graph_info g;
  g.devices = {"cpu:0"};
  g.handles = {{"a", "a", true, false, 0, "compute", ""},
               {"b", "b", true, false, 0, "compute", ""}};
  g.edges = {{0, 1, 0}, {1, 0, 0}};
  const live_picture picture{g, {0}, 1};
  CHECK(why_in(picture, 0).links.size() <= 2);
}

TEST_CASE("names of any bytes make a valid frame") {
  auto t = two_ops();
  t.graph.devices = {"cpu:\xff"};
  const live_picture picture{t.graph, {0}, 2};
  frame_maker frames;
  CHECK(frame_reader{frames.next(picture, {})}.head["arrays"].size() > 0);
}

} // TEST_SUITE("dashboard.answers")
