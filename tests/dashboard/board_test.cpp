// SPDX-License-Identifier: Apache-2.0
#include <troupe/dashboard/board.hpp>

#include <troupe/actors/traced_actor.hpp>
#include <troupe/actors/tracing/step_watchdog.hpp>
#include <troupe/trace/trace_reader.hpp>
#include <troupe/training/actors/trainer.hpp>
#include <troupe/training/data/generator_source.hpp>
#include <troupe/training/training_session.hpp>

#include <actors/small_nets.hpp>
#include <support/caught.hpp>
#include <support/files.hpp>
#include <trace/export/hand_made_trace.hpp>
#include <training/actors/asking.hpp>
#include <training/line_program.hpp>

#include "server/raw_client.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

using namespace troupe;
using namespace troupe::dashboard;
using namespace troupe::dashboard::test;
using namespace troupe::test;
using nlohmann::json;

TEST_SUITE("dashboard.board") {

namespace {

/// The cookie in an answer to a link, as a header.
std::string cookie_in(const raw_answer& answer) {
  const auto begin = answer.head.find("troupe_");
  REQUIRE(begin != std::string::npos);
  const auto end = answer.head.find(';', begin);
  return "Cookie: " + answer.head.substr(begin, end - begin) + "\r\n";
}

/// A board, a program that shows its secret to look, and one that has opened
/// the link with controls.
class asked_board {
public:
  asked_board() : board_({.token_file = folder_ / "token"}) {
    const auto& link = board_.control_link();
    const auto colon = link.rfind(':');
    port_ = static_cast<std::uint16_t>(std::stoul(link.substr(colon + 1)));
    secret_ = read_bytes(folder_ / "token");
    while (!secret_.empty() && secret_.back() == '\n')
      secret_.pop_back();
    control_ = cookie_in(ask("GET " + link.substr(link.find("/?")), "", ""));
  }

  board& operator*() noexcept { return board_; }
  board* operator->() noexcept { return &board_; }

  raw_answer get(const std::string& path) const {
    return ask("GET " + path, bearer(), "");
  }
  json get_json(const std::string& path) const {
    const auto answer = get(path);
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return json::parse(answer.body);
  }
  raw_answer obey(const std::string& body) const {
    return ask("POST /api/v1/control", control_, body);
  }
  raw_answer obey_with_secret(const std::string& body) const {
    return ask("POST /api/v1/control", bearer(), body);
  }
  /// Asks for the state until it is as wanted, and returns it.
  json wait_for(const std::function<bool(const json&)>& is_wanted) const {
    for (;;) {
      const auto state = get_json("/api/v1/state");
      if (is_wanted(state))
        return state;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  }

private:
  std::string bearer() const {
    return "Authorization: Bearer " + secret_ + "\r\n";
  }
  /// @param access a header
  raw_answer ask(const std::string& what, const std::string& access,
                 const std::string& body) const {
    raw_client client{port_};
    client.send(what + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_)
                + "\r\n" + access
                + "Content-Type: application/json\r\nContent-Length: "
                + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.receive_answer();
  }

  temporary_folder folder_;
  board board_;
  std::uint16_t port_ = 0;
  std::string secret_, control_;
};

/// Checks a list of numbers by the definition that its schema refers to.
void require_numbers(const json& answer, const json& definition) {
  const auto& items = definition["items"];
  for (const auto& value : answer)
    if (value.is_number() && items.contains("exclusiveMinimum"))
      CHECK(value > items["exclusiveMinimum"]);
}

/// Checks that an answer's objects have the properties of their schema, and no
/// others. Follows lists to their first item.
void require_same_keys(const json& answer, const json& schema) {
  if (schema.contains("items") && schema["items"].contains("properties")) {
    REQUIRE(answer.is_array());
    if (!answer.empty())
      require_same_keys(answer[0], schema["items"]);
    return;
  }
  if (!schema.contains("properties"))
    return;
  REQUIRE(answer.is_object());
  for (const auto& [key, value] : answer.items()) {
    CAPTURE(key);
    CHECK(schema["properties"].contains(key));
  }
  for (const auto& [key, value] : schema["properties"].items()) {
    CAPTURE(key);
    CHECK(answer.contains(key));
    if (answer.contains(key))
      require_same_keys(answer[key], value);
  }
}

/// Two steps of conv2d and momentum.
trace::process_trace recorded() {
  auto t = two_ops();
  for (std::uint32_t step = 0; step < 2; ++step)
    event_list{t}
      .on(0, step)
      .add(1000 * step, event_kind::step_begin)
      .run(1000 * step + 100, 1000 * step + 300, conv)
      .run(1000 * step + 400, 1000 * step + 600, update)
      .add(1000 * step + 700, event_kind::step_end);
  return t;
}

} // namespace

TEST_CASE("before a run is shown, there is nothing to answer") {
  asked_board b;
  CHECK(b.get("/api/v1/state").status == 503);
  CHECK(b.get("/metrics").status == 503);
  CHECK(b.get("/healthz").status == 200);
}

TEST_CASE("the page and its files are part of the library") {
  asked_board b;
  const auto page = b.get("/");
  CHECK(page.status == 200);
  CHECK(page.header("Content-Type") == "text/html; charset=utf-8");
  CHECK(page.body.find("<title>Troupe</title>") != std::string::npos);
  const auto script = b.get("/app.js");
  CHECK(script.header("Content-Type") == "text/javascript; charset=utf-8");
  CHECK(b.get("/style.css").header("Content-Type")
        == "text/css; charset=utf-8");
  CHECK(b.get("/page_files.hpp").status == 503); // no file of the page
}

TEST_CASE("a run is shown while it runs, and stays when it has ended") {
  asked_board b;
  const auto net = make_mlp();
  {
    executor_options o;
    o.parameters = net.parameters();
    executor exe(net.main, o);
    const auto shown = b->show(exe, "a test");
    const auto run = b.get_json("/api/v1/run");
    CHECK(run["command"] == "a test");
    CHECK(run["recorded"] == false);
    CHECK(run["may_control"] == false); // with the secret of the file
    CHECK(b.get_json("/api/v1/graph")["handles"].size() == exe.graph().size());
    // A question counts as a look: from then on, messages are recorded.
    b.wait_for([&](const json& s) { return s["level"] == "messages"; });
    for (std::uint64_t step = 0; step < 4; ++step) {
      const auto result = exe.run(net.batch(step, 8));
      b->tell({result.step, result.loss, 100, 0.5});
    }
    const auto state =
      b.wait_for([](const json& s) { return s["steps_ended"] == 4; });
    CHECK(state["state"] == "running");
    // Of the steps that have ended; some open the step after them.
    const auto messages = exe.stats().messages;
    CHECK(state["messages"] >= messages);
    CHECK(b.get("/metrics")
            .body.find("troupe_messages_total{rank=\"0\"} "
                       + std::to_string(messages) + "\n")
          != std::string::npos);
    CHECK(state["lost"] == 0);
    const auto series = b.get_json("/api/v1/series");
    CHECK(series["steps"].dump() == "[0,1,2,3]");
    CHECK(series["learning_rate"].dump() == "[0.5,0.5,0.5,0.5]");
    CHECK(b.get_json("/api/v1/timeline")["slices"].size() > 0);
    CHECK(b.get_json("/api/v1/why?handle=0")["links"].size() == 1);
    CHECK(b.get("/api/v1/why?handle=1000000").status == 404);
    CHECK(b.get("/api/v1/why?handle=x").status == 400);
    CHECK(b.get("/metrics").body.find("troupe_steps_total{rank=\"0\"} 4")
          != std::string::npos);
  }
  CHECK(b.get_json("/api/v1/state")["state"] == "ended");
  CHECK(b.get_json("/api/v1/series")["steps"].size() == 4);
  CHECK(b.get_json("/api/v1/why")["links"].empty());
  CHECK(b.obey(R"({"command":"pause"})").status == 400);
}

TEST_CASE("a trainer's run is shown with an application's actor") {
  asked_board b;
  host_application app;
  caf::scoped_actor self{*app.system};
  line_batches data;
  std::shared_ptr<recorder> events;
  trainer_options options;
  options.session.executor.attach =
    [&](executor& exe) -> std::shared_ptr<void> {
    events = exe.shared_trace();
    return b->show(exe, "a trainer");
  };
  const auto to = spawn_trainer(*app.system, make_line_program(), options);
  const auto desk = app.system->spawn<traced_function>(
    events, "desk", [](caf::event_based_actor*) {
      return caf::behavior{[](int number) { return number; }};
    });
  b.wait_for([](const json& s) { return s["level"] == "messages"; });
  CHECK(ask<int>(self, desk, 7).get() == 7);
  for (std::uint64_t step = 0; step < 3; ++step)
    ask<trained_step>(self, to, train_batch{share_batch(data.batch(step))})
      .get();
  b.wait_for([](const json& s) { return s["steps_ended"] == 3; });
  CHECK(b.get_json("/api/v1/actors")["application"][0]["name"] == "desk");
  ask<trainer_state>(self, to, stop_training{}).get();
  b.wait_for([](const json& s) { return s["state"] == "ended"; });
}

// The example of docs/embedding.md.
TEST_CASE("an application tells a board what the executor does not know") {
  asked_board b;
  board& board = *b;
  line_batches data;
  const generated_batches form{.steps_per_epoch = 20, .batch = 4};
  const auto source = make_generator_source(
    [&](std::uint64_t, std::uint64_t i) { return data.batch(i); }, form);
  const auto program = make_line_program();
  session_options options;
  options.batches = form;

  options.executor.attach = [&board](executor& exe) -> std::shared_ptr<void> {
    struct followers {
      std::unique_ptr<dashboard::board::shown_run> shown;
      std::unique_ptr<step_watchdog> watchdog; // ends first
    };
    auto both = std::make_shared<followers>();
    both->shown = board.show(exe, "prices");
    both->watchdog = std::make_unique<step_watchdog>(
      exe, std::chrono::seconds{60},
      [&board](const std::string& line) { board.warn(line); });
    return both;
  };
  {
    training_session session{program, options};
    const auto first = session.position().steps; // of a run that is resumed
    training_observer observer;
    observer.step = [&board, first](const step_metrics& m) {
      board.tell({.step = m.step - first,
                  .loss = m.loss,
                  .samples_per_s = m.samples_per_s,
                  .learning_rate = 0.1});
    };
    session.run(*source, {.epochs = 1}, observer);
    board.warn("a line for the page");
    board.fail("the reason of an error");
  }
  const auto series = b.get_json("/api/v1/series");
  CHECK(series["steps"].size() == 20);
  CHECK(series["loss"][19].is_number());
  CHECK(series["samples_per_s"][19] > 0);
  CHECK(series["learning_rate"][19] == 0.1);
  const auto state = b.get_json("/api/v1/state");
  CHECK(state["warning"] == "a line for the page");
  CHECK(state["failure"] == "the reason of an error");
  CHECK(state["state"] == "failed");
}

TEST_CASE("a run that ends leaves the one that is shown after it") {
  asked_board b;
  const auto net = make_mlp();
  executor_options o;
  o.parameters = net.parameters();
  executor first(net.main, o);
  auto shown_first = b->show(first, "first");
  executor second(net.main, o);
  const auto shown_second = b->show(second, "second");
  shown_first.reset();
  CHECK(b.get_json("/api/v1/run")["command"] == "second");
  CHECK(b.get_json("/api/v1/state")["state"] != "ended");
  second.run(net.batch(0, 8));
  b.wait_for([](const json& s) { return s["steps_ended"] == 1; });
}

TEST_CASE("the schema has all that is answered, and nothing else") {
  asked_board b;
  const auto net = make_mlp();
  executor_options o;
  o.devices = parse_devices("cpu:2");
  o.strategy = graph::merge_strategy::all_reduce;
  o.parameters = net.parameters();
  executor exe(net.main, o);
  const auto shown = b->show(exe, "a test");
  b.wait_for([](const json& s) { return s["level"] == "messages"; });
  exe.trace().actors().add({1, 2}, {.name = "feeder", .id = 2});
  exe.run(net.batch(0, 8));
  b.wait_for([](const json& s) { return s["steps_ended"] == 1; });
  CHECK(b.get_json("/api/v1/actors")["application"][0]["name"] == "feeder");
  const auto schema = b.get_json("/api/v1/schema");
  for (const auto& [path, wanted] : schema["properties"].items()) {
    INFO(path);
    const auto answer = path == "/api/v1/why"
                          ? b.get_json("/api/v1/why?handle=0")
                        : path == "/api/v1/control"
                          ? json::parse(b.obey(R"({"command":"resume"})").body)
                          : b.get_json(path);
    require_same_keys(answer, wanted);
  }
  b->tell({.step = 1, // it is under way: its time is not known
           .loss = 0.5,
           .samples_per_s = {},
           .learning_rate = {}});
  const auto series = b.get_json("/api/v1/series");
  CHECK(series["ms"].size() == 2);
  for (const auto& [key, wanted] :
       schema["properties"]["/api/v1/series"]["properties"].items()) {
    INFO(key);
    const auto reference = wanted["$ref"].get<std::string>().substr(1);
    require_numbers(series[key], schema.at(json::json_pointer{reference}));
  }
}

TEST_CASE("a collective that began before anybody looked says who is missing") {
  const auto net = make_mlp();
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.parameters = net.parameters();
  options.lowering.merge_in_updates = options.lowering.share_parameters = false;
  options.hooks.rank_collectives = true;
  message_id held; // to the first collective of device 1
  {
    const executor whole{net.main, options};
    const auto& g = whole.graph();
    for (auto& e : g.edges)
      if (g.is_op(e.to) && g.op(e.to).collective_index == 0
          && g.op(e.to).device == 1 && e.distance == 0)
        held = {e.from, e.to, 0};
  }
  REQUIRE(held.to != no_handle);
  options.hooks.shuffle = delivery_shuffle{.seed = {}, .withheld = held};
  executor exe{net.main, options};
  const auto step = exe.submit(net.batch(0, 6));
  while (exe.collectives().empty())
    std::this_thread::yield();
  asked_board board;
  const auto shown = board->show(exe, "held");
  const auto all = board.get_json("/api/v1/collectives");
  let_go(exe);
  exe.wait(step);
  REQUIRE_FALSE(all.empty());
  CHECK(all[0]["arrived"].dump() == R"(["cpu:0"])");
  CHECK(all[0]["missing"].dump() == R"(["cpu:1"])");
  CHECK(all[0]["waiting_ns"] > 0);
}

TEST_CASE("with the strategy reduce, updates that merge gradients are shown") {
  const auto net = make_mlp();
  executor_options options;
  options.devices = parse_devices("cpu:2");
  options.strategy = graph::merge_strategy::reduce;
  options.parameters = net.parameters();
  executor exe{net.main, options};
  asked_board board;
  const auto shown = board->show(exe, "reduce");
  json all = json::array();
  // The board takes events ten times a second: also half of a step.
  const auto is_over = [&] {
    return !all.empty() && all[0]["calls"] > 0 && all[0]["missing"].empty();
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (!is_over() && std::chrono::steady_clock::now() < end) {
    exe.run(net.batch(0, 6));
    all = board.get_json("/api/v1/collectives");
  }
  REQUIRE_FALSE(all.empty());
  CHECK(all[0]["devices"].dump() == R"(["cpu:0","cpu:1"])");
  CHECK(all[0]["arrived"].size() == 2);
  CHECK(all[0]["missing"].empty());
  CHECK(all[0]["calls"] > 0);
  CHECK(all[0]["values"][0].get<std::string>().ends_with("@GRAD"));
}

TEST_CASE("a warning is shown with the time at which it came") {
  asked_board board;
  board->warn("nobody runs yet");
  const auto net = make_mlp();
  executor exe{net.main, {.parameters = net.parameters()}};
  const auto shown = board->show(exe, "mlp");
  CHECK(board.get_json("/api/v1/state")["warnings"] == 0);
  board->warn("step 3 has not ended for 5.0 s");
  board->warn("step 4 has not ended for 5.0 s");
  const auto state = board.get_json("/api/v1/state");
  CHECK(state["warnings"] == 2);
  CHECK(state["warning"] == "step 4 has not ended for 5.0 s");
  CHECK(state["warning_ms"].get<double>() > 0);
  CHECK(contains(board.get("/metrics").body, "troupe_warnings_total{"));
}

TEST_CASE("a run that has failed says why, and the next one does not") {
  asked_board board;
  board->fail("nobody runs yet");
  const auto net = make_mlp();
  {
    executor exe{net.main, {.parameters = net.parameters()}};
    const auto shown = board->show(exe, "mlp");
    CHECK(board.get_json("/api/v1/state")["failure"] == "");
    board->fail("process 1 is lost: no sign of life for 5.0 s");
  }
  const auto state = board.get_json("/api/v1/state");
  CHECK(state["state"] == "failed");
  CHECK(state["failure"] == "process 1 is lost: no sign of life for 5.0 s");
  CHECK(board.get_json("/api/v1/actors")["errors"][0] == state["failure"]);
  board->show({recorded()});
  CHECK(board.get_json("/api/v1/state")["failure"] == "");
}

TEST_CASE("each run that is shown has another number") {
  asked_board b;
  b->show({recorded()});
  const auto first = b.get_json("/api/v1/run")["run"];
  b->show({recorded()});
  CHECK(b.get_json("/api/v1/run")["run"] != first);
}

TEST_CASE("a run is paused, goes on a step, and is slowed down") {
  asked_board b;
  const auto net = make_mlp();
  executor_options o;
  o.parameters = net.parameters();
  executor exe(net.main, o);
  const auto shown = b->show(exe, "a test");
  CHECK(b.obey_with_secret(R"({"command":"pause"})").status == 403);
  CHECK_FALSE(exe.pace().is_paused());
  CHECK(json::parse(b.obey(R"({"command":"pause"})").body)["state"]
        == "paused");
  CHECK(exe.pace().is_paused());
  b.obey(R"({"command":"step"})");
  exe.run(net.batch(0, 8));
  const auto why = b.get_json("/api/v1/why");
  CHECK(why["text"].get<std::string>().starts_with(
    "the run is paused: step 1 begins"));
  REQUIRE(why["links"].size() == 1);
  CHECK(why["links"][0]["step"] == 1);
  CHECK(
    b.get_json("/api/v1/why?handle=0")["text"].get<std::string>().starts_with(
      "the run is paused"));
  b.obey(R"({"command":"resume"})");
  CHECK_FALSE(exe.pace().is_paused());
  CHECK(b.get_json("/api/v1/why")["text"] == "");
  const auto slow = b.obey(R"({"command":"slow","op_delay_ms":3})");
  CHECK(json::parse(slow.body)["op_delay_ms"] == 3);
  CHECK(exe.pace().op_delay() == std::chrono::milliseconds{3});
  for (const auto* wrong :
       {"", "[]", "{}", R"({"command":7})", R"({"command":"explode"})",
        R"({"command":"slow"})", R"({"command":"slow","op_delay_ms":-1})",
        R"({"command":"slow","op_delay_ms":1e9})", R"({"command":"rewind"})"}) {
    INFO(wrong);
    CHECK(b.obey(wrong).status == 400);
  }
}

TEST_CASE("the flight recorder of a run is dumped when somebody asks") {
  const temporary_folder folder;
  const auto net = make_mlp();
  executor_options o;
  o.parameters = net.parameters();
  o.flight_recorder.file = (folder / "held.trt").string();
  executor exe(net.main, o);
  asked_board b;
  const auto shown = b->show(exe, "a test");
  exe.run(net.batch(0, 8));
  const auto done = json::parse(b.obey(R"({"command":"dump"})").body);
  CHECK(done["file"] == (folder / "held-1.trt").string());
  CHECK(trace::read_trace(folder / "held-1.trt").graph.handles.size()
        == exe.trace_head().graph.handles.size());

  std::filesystem::remove_all(folder.path());
  CHECK(b.obey(R"({"command":"dump"})").status == 500);
  b->show({recorded()});
  CHECK(b.obey(R"({"command":"dump"})").status == 400);
}

TEST_CASE("files of all ranks of a job are shown as one run") {
  asked_board b;
  b->show(two_ranks());
  const auto run = b.get_json("/api/v1/run");
  REQUIRE(run["ranks"].size() == 2);
  CHECK(run["ranks"][1]["rank"] == 1);
  CHECK(run["ranks"][1]["workers"] == 1);
  CHECK(b.get_json("/api/v1/memory").size() == 2);
  b->show({two_ranks()[1]});
  CHECK(b.get_json("/api/v1/run")["ranks"].size() == 1);
  CHECK(b.get_json("/api/v1/memory").size() == 1);
}

TEST_CASE("a file is shown whole, and played after it was rewound") {
  asked_board b;
  b->show({recorded()});
  const auto state =
    b.wait_for([](const json& s) { return s["state"] == "ended"; });
  CHECK(state["steps_ended"] == 2);
  const auto run = b.get_json("/api/v1/run")["run"];
  // Slow motion, so that the file does not end at once.
  b.obey(R"({"command":"slow","op_delay_ms":10000})");
  b.obey(R"({"command":"rewind"})");
  CHECK(b.get_json("/api/v1/run")["run"] != run);
  CHECK(b.get_json("/api/v1/state")["state"] == "running");
  CHECK(b.get_json("/api/v1/state")["steps_ended"] == 0);
  b.obey(R"({"command":"step"})");
  CHECK(b.get_json("/api/v1/state")["state"] == "paused");
  CHECK(b.get_json("/api/v1/state")["steps_ended"] == 1);
}

TEST_CASE("a file that lacks its end is said to be cut") {
  asked_board b;
  auto t = recorded();
  t.is_complete = true;
  b->show({t});
  CHECK(b.get_json("/api/v1/run")["cut"] == false);
  t.is_complete = false;
  b->show({t});
  CHECK(b.get_json("/api/v1/run")["cut"] == true);
}

TEST_CASE("an address that is none is refused") {
  for (const auto* text : {"", "localhost", "127.0.0.1:", ":x", "::1:99999"}) {
    INFO(text);
    const auto refused = caught([&] { board{{.address = text}}; });
    CHECK(refused.code() == errc::invalid_argument);
    const auto before = caught([&] { require_safe({.address = text}); });
    CHECK(before.message() == refused.message());
  }
}

} // TEST_SUITE("dashboard.board")
