// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <troupe/apps/bench/delayed_run.hpp>
#include <troupe/apps/bench/task_engine.hpp>
#include <troupe/apps/bench/task_graph.hpp>
#include <troupe/apps/bench/task_program.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/error.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe::apps;
using namespace troupe::test;

TEST_SUITE("apps.bench") {

namespace {

std::vector<std::uint32_t> before(const task_graph& g, std::size_t task) {
  return {g.before(task).begin(), g.before(task).end()};
}

using tasks = std::vector<std::uint32_t>;

/// True if the sanitizers can check an engine. Leaks within its library are not
/// ours.
bool can_be_watched([[maybe_unused]] std::string_view engine) {
#if defined(__SANITIZE_ADDRESS__)
  return !engine.starts_with("onetbb") && engine != "openmp";
#else
  return true;
#endif
}

/// A copy of a graph in which no task waits for another one.
class forgetful_graph {
public:
  explicit forgetful_graph(const task_graph& g) : graph_(g) {
    graph_.predecessors.clear();
    graph_.first.assign(g.tasks() + 1, 0);
  }
  const task_graph& get() const { return graph_; }

private:
  task_graph graph_;
};

/// The most memory that the process has held since the last call.
std::size_t most_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::size_t kib = 0;
  for (std::string word; status >> word;)
    if (word == "VmHWM:")
      status >> kib;
  std::ofstream("/proc/self/clear_refs") << 5; // counts from here
  return kib * 1024;
}

/// Stops `troupe bench` with `words` by each of the three signals, after it has
/// measured for a while.
void check_stop(std::vector<std::string> words) {
  CAPTURE(words[0]);
  words.insert(words.begin(), "bench");
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto result = run_troupe(words, [signal](pid_t process, auto&) {
      return catches(process, signal) && cpu_seconds(process) > 0.5
             && ::kill(process, signal) == 0;
    });
    CHECK(fails_with(result, 1, {"troupe: stopped"}));
  }
}

} // namespace

TEST_CASE("a stencil's tasks wait for their neighbours of the row before") {
  const auto g = make_task_graph({"stencil_1d", 4, 2, 3});
  REQUIRE(g.tasks() == 8);
  CHECK(before(g, 0).empty());
  CHECK(before(g, 4) == tasks{0, 1});
  CHECK(before(g, 5) == tasks{0, 1, 2});
  CHECK(before(g, 7) == tasks{2, 3});
}

TEST_CASE("a periodic stencil wraps around") {
  const auto g = make_task_graph({"stencil_1d_periodic", 4, 2, 3});
  CHECK(before(g, 4) == tasks{0, 1, 3});
}

TEST_CASE("a tree doubles its rows and has one parent per task") {
  const auto g = make_task_graph({"tree", 4, 4, 3});
  REQUIRE(g.tasks() == 1 + 2 + 4 + 4);
  CHECK(before(g, 1) == tasks{0});
  CHECK(before(g, 6) == tasks{2});
}

TEST_CASE("a sweep grows to its width and shrinks again") {
  const auto g = make_task_graph({"dom", 3, 5, 3});
  CHECK(g.tasks() == 1 + 2 + 3 + 2 + 1);
}

TEST_CASE("a butterfly reaches farther from row to row") {
  const auto g = make_task_graph({"fft", 4, 3, 3});
  CHECK(before(g, 5) == tasks{0, 1, 2});
  CHECK(before(g, 8) == tasks{4, 6});
}

TEST_CASE("bad grids are refused") {
  CHECK_THROWS_AS(make_task_graph({"no_such", 4, 4, 3}), troupe::error);
  CHECK_THROWS_AS(make_task_graph({"fft", 0, 4, 3}), troupe::error);
  CHECK_THROWS_AS(make_task_graph({"nearest", 4, 4, 5}), troupe::error);
  CHECK_NOTHROW(make_task_graph({"stencil_1d", 2, 4, 3})); // ignores the radix
}

TEST_CASE("a grid that no machine has memory for is refused before it is "
          "made") {
  CHECK_THROWS_AS(make_task_graph({"no_comm", 1 << 12, (1 << 12) + 1, 3}),
                  troupe::error);
  [[maybe_unused]] const auto before = most_resident_bytes();
  CHECK_THROWS_AS(make_task_graph({"all_to_all", 1 << 12, 1 << 10, 3}),
                  troupe::error);
#if !defined(__SANITIZE_ADDRESS__) // which keeps freed memory for a while
  CHECK(most_resident_bytes() < before + (std::size_t{64} << 20));
#endif
}

TEST_CASE("every engine runs every pattern in order, on one thread and two") {
  for (auto name : task_patterns()) {
    const auto graph = make_task_graph({std::string(name), 6, 9, 3});
    for (auto& entry : task_engines())
      for (int threads : {1, 2}) {
        if (!entry.make || !can_be_watched(entry.name))
          continue;
        CAPTURE(name);
        CAPTURE(entry.name);
        task_work work{graph, 0, true};
        auto engine = entry.make(graph, work, threads);
        for (int pass = 0; pass < 3; ++pass) {
          work.begin_pass();
          engine->run_pass();
          CHECK(work.violations() == 0);
        }
      }
  }
}

TEST_CASE("an engine that forgets dependencies is found out") {
  const auto graph = make_task_graph({"stencil_1d", 6, 9, 3});
  const forgetful_graph wrong{graph};
  task_work work{graph, 0, true};
  const auto engine = make_troupe_engine(wrong.get(), work, 1);
  work.begin_pass();
  work.run(53); // before its predecessors
  engine->run_pass();
  CHECK(work.violations() > 0);
}

TEST_CASE("a predecessor that another thread ran is a hop") {
  const auto graph = make_task_graph({"no_comm", 1, 2, 3});
  REQUIRE(graph.edges() == 1);
  task_work work{graph, 0, true};
  work.begin_pass();
  work.run(0);
  work.run(1);
  CHECK(work.hops_per_task() == 0);
  work.begin_pass();
  std::thread{[&] { work.run(0); }}.join();
  work.run(1);
  CHECK(work.hops_per_task() == doctest::Approx(0.25));
}

TEST_CASE("bench tasks answers with one JSON object per engine") {
  const auto result = run_troupe(
    {"bench", "tasks", "--engine", "troupe,ready_queue", "--width", "4",
     "--steps", "8", "--repeat", "2", "--sample-ms", "0", "--check", "--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto lines = lines_of(result.out);
  REQUIRE(lines.size() == 2);
  const auto first = nlohmann::json::parse(lines[0]);
  CHECK(first["engine"] == "troupe");
  CHECK(first["tasks"] == 32);
  CHECK(first["edges"] == 7 * 10);
  CHECK(first["ns_per_task"] > 0);
  CHECK(nlohmann::json::parse(lines[1])["engine"] == "ready_queue");
}

TEST_CASE("bench schedule tells what a dry step costs") {
  const auto result =
    run_troupe({"bench", "schedule", "mlp", "--devices", "cpu:2", "--repeat",
                "2", "--sample-ms", "0", "--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto out = nlohmann::json::parse(result.out);
  CHECK(out["op_handles"] > out["ops"]);
  CHECK(out["messages_per_step"] > 0);
  CHECK(out["ns_per_op"] > 0);
}

TEST_CASE("bench schedule has as many pending ops and remote edges as asked") {
  const std::vector<std::string> plain{"bench",     "schedule",    "mlp",
                                       "--threads", "1",           "--repeat",
                                       "1",         "--sample-ms", "0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), plain.begin(), plain.end());
    const auto result = run_troupe(more);
    INFO(result.err);
    REQUIRE(result.code == 0);
    return result.out;
  };
  const auto json = [&](std::vector<std::string> more) {
    more.emplace_back("--json");
    return nlohmann::json::parse(with(more));
  };
  const auto without = json({});
  CHECK(!without.contains("pending_ops"));
  CHECK(!without.contains("remote_edges"));
  CHECK(!without.contains("late"));
  const auto unusual = json({"--pending", "3", "--remote", "2"});
  CHECK(unusual["pending_ops"] == 3);
  CHECK(unusual["remote_edges"] == 2);
  CHECK(unusual["ops"] == without["ops"]);
  const auto late = json({"--late", "--remote", "1"});
  CHECK(late["late"] == true);
  CHECK(late["pending_ops"] == late["op_handles"]);
  CHECK(late["remote_edges"] == 1);
  const auto text = with({"--pending", "3", "--remote", "2"});
  CHECK(text.find("pending ops: 3\n") != text.npos);
  CHECK(text.find("remote edges: 2\n") != text.npos);
  CHECK(with({"--late"}).find("late devices\n") != text.npos);
}

TEST_CASE("pending ops and remote edges that cannot be are refused") {
  const auto refused = [](std::vector<std::string> more,
                          const std::vector<std::string>& parts) {
    more.insert(more.begin(), {"bench", "schedule", "mlp"});
    const auto result = run_troupe(more);
    INFO(result.err);
    CHECK(lines_of(result.err).size() == 1);
    CHECK(fails_with(result, 2, parts));
  };
  for (auto* option : {"--pending", "--remote"}) {
    refused({option, "-1"}, {option});
    refused({option, "few"}, {option, "few"});
    refused({option, "1000000"}, {option, "has only"});
  }
  refused({"--late", "--pending", "1"}, {"--late", "--pending"});
  refused({"--late", "--delay", "mul=1us"}, {"--late", "--delay"});
  refused({"--late", "--devices", "cuda:0"}, {"--late", "cuda:0"});
}

TEST_CASE("delays along the longest path bound a step") {
  const auto graph = make_task_graph({"tree", 4, 3, 3}); // rows of 1, 2, 4
  const auto program = make_task_program(graph);
  const auto delays = delay_table::read({"task=10us"});
  troupe::executor_options options;
  const auto plan = std::make_shared<op_delays>();
  use_delays(options, program, delays, delay_kind::spin, plan);
  troupe::executor exe{program, options};
  *plan = plan_delays(exe, delays);
  const auto bounds = bounds_of(exe.graph(), *plan);
  CHECK(bounds.work_ns == 70'000);
  CHECK(bounds.critical_path_ns == 30'000);
  CHECK(bounds.ideal_ns(1) == 70'000);
  CHECK(bounds.ideal_ns(2) == 35'000);
  CHECK(bounds.ideal_ns(7) == 30'000);
}

TEST_CASE("bench schedule counts and times what a step records") {
  std::size_t events = 0;
  for (auto* level : {"steps", "ops", "messages"}) {
    const auto result =
      run_troupe({"bench", "schedule", "mlp", "--threads", "1", "--repeat", "1",
                  "--sample-ms", "0", "--level", level, "--json"});
    INFO(result.err);
    REQUIRE(result.code == 0);
    const auto out = nlohmann::json::parse(result.out);
    CHECK(out["events_per_step"] > events);
    CHECK(out["recorded_ms"] > 0);
    CHECK(out.contains("ns_per_event"));
    events = out["events_per_step"];
  }
  CHECK(fails_with(run_troupe({"bench", "schedule", "mlp", "--level", "all"}),
                   2, {"--level"}));
}

TEST_CASE("bench schedule lets kernels and collectives take time") {
  for (auto* kind : {"spin", "sleep"}) {
    const auto result = run_troupe(
      {"bench", "schedule", "mlp", "--devices", "cpu:2", "--repeat", "1",
       "--sample-ms", "0", "--delay", "mul=50us,all_reduce=80us,fetch=7us",
       "--delay-kind", kind, "--json"});
    INFO(result.err);
    REQUIRE(result.code == 0);
    const auto out = nlohmann::json::parse(result.out);
    CHECK(out["ms"] >= out["ideal_ms"]);
    CHECK(out["ideal_ms"] >= out["critical_path_ms"]);
    CHECK(out["overlap"] <= out["ideal_overlap"]);
    CHECK(out["critical_path_ms"] > 0.23); // three mul and an all_reduce
    CHECK(out["work_ms"] >= 6 * 0.05 + 0.08 + 2 * 0.007);
  }
}

TEST_CASE("bench steps trains alike on the actors and on a ready queue") {
  if (troupe::usable_cores() < 2)
    return skip_case("needs two cores");
  // resnet8 has passes that change its graph
  for (const char* net : {"mlp", "word2vec", "resnet8"}) {
    CAPTURE(net);
    const auto result =
      run_troupe({"bench", "steps", net, "--batch", "8", "--threads", "2",
                  "--repeat", "2", "--sample-ms", "0", "--json"});
    INFO(result.err);
    REQUIRE(result.code == 0);
    const auto lines = lines_of(result.out);
    REQUIRE(lines.size() == 2);
    const auto actors = nlohmann::json::parse(lines[0]);
    const auto queue = nlohmann::json::parse(lines[1]);
    CHECK(actors["engine"] == "troupe");
    CHECK(queue["engine"] == "ready_queue");
    CHECK(actors["ops"] == queue["ops"]);
    CHECK(actors["ratio"] == 1.0);
    CHECK(queue["ms"] > 0);
    CHECK(actors["loss"] > 0);
    CHECK(actors["loss"] == queue["loss"]);
  }
}

TEST_CASE("bench latency measures hand-offs, levels, requests and idling") {
  if (troupe::usable_cores() < 2)
    return skip_case("needs two cores");
  const auto result =
    run_troupe({"bench", "latency", "--gap-us", "0,20", "--op-us", "10",
                "--rounds", "5", "--steps", "2", "--idle-s", "0.01", "--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto lines = lines_of(result.out);
  REQUIRE(lines.size() == 5);
  const auto handoff = nlohmann::json::parse(lines[1]);
  CHECK(handoff["what"] == "handoff");
  CHECK(handoff["gap_us"] == 20);
  CHECK(handoff["p99_us"] >= handoff["us"]);
  CHECK(handoff["handshake_us"] > 0);
  const auto own = nlohmann::json::parse(lines[2]);
  CHECK(own["ms"] >= own["ideal_ms"]);
  const auto shared = nlohmann::json::parse(lines[3]);
  CHECK(shared["system"] == "application");
  CHECK(shared["request_us"] > 0);
  CHECK(nlohmann::json::parse(lines[4])["cpu_percent"] >= 0);
}

TEST_CASE("the search for the METG is silent away from a terminal") {
  const auto result =
    run_troupe({"bench", "tasks", "--metg", "--width", "2", "--steps", "4",
                "--repeat", "1", "--sample-ms", "0", "--json"});
  REQUIRE(result.code == 0);
  CHECK(result.err == "");
  CHECK(nlohmann::json::parse(result.out)["metg_us"] > 0);
}

TEST_CASE("bench tasks tells the cost of a pass from that of its tasks") {
  const auto result = run_troupe(
    {"bench", "tasks", "--by-size", "--width", "2", "--steps", "32", "--engine",
     "troupe,ready_queue", "--repeat", "1", "--sample-ms", "0", "--json"});
  CHECK(result.code == 0);
  const auto lines = lines_of(result.out);
  REQUIRE(lines.size() == 2);
  for (auto& text : lines) {
    const auto line = nlohmann::json::parse(text);
    CHECK(line.contains("fixed_us"));
    std::vector<int> tasks;
    for (auto& size : line["sizes"]) {
      tasks.push_back(size["tasks"]);
      CHECK(size["ns_per_task"] > 0);
    }
    CHECK(tasks == std::vector{4, 16, 64});
  }
  CHECK(run_troupe({"bench", "tasks", "--by-size", "--steps", "8"}).code == 2);
}

TEST_CASE("bench wants a list of engines, each once") {
  const auto refused = [](const std::string& engines, const std::string& why) {
    for (std::vector<std::string> words :
         {std::vector<std::string>{"bench", "tasks"},
          {"bench", "steps", "mlp"}}) {
      words.insert(words.end(), {"--engine", engines});
      CAPTURE(engines);
      CHECK(fails_with(run_troupe(words), 2, {"--engine: " + why}));
    }
  };
  for (const std::string engines : {"", ",", "troupe,", "troupe,,ready_queue"})
    refused(engines, "must be names with commas between, not '" + engines);
  refused("troupe,ready_queue,troupe", "troupe is there twice");
  for (const auto* engines : {"all,troupe", "troupe,all"})
    CHECK(fails_with(run_troupe({"bench", "tasks", "--engine", engines}), 2,
                     {"--engine: all stands for every engine and takes no "
                      "others beside it"}));
  CHECK(fails_with(run_troupe({"bench", "steps", "mlp", "--engine", "all"}), 2,
                   {"--engine: no such engine: all"}));
}

TEST_CASE("lists of lengths are all taken") {
  const auto refused = [](const std::vector<std::string>& words,
                          const std::string& why) {
    return fails_with(run_troupe(words), 2, {why});
  };
  for (const std::string option : {"--gap-us", "--op-us"}) {
    const auto with = [&](std::vector<std::string> values) {
      values.insert(values.begin(), {"bench", "latency", option});
      return values;
    };
    for (const auto* list : {"1,,2", ",1", "1,"})
      CHECK(refused(with({list}), option + ": must not be empty"));
    CHECK(refused(with({"1,x"}),
                  option + ": must be numbers with commas between, not '1,x'"));
    CHECK(refused(with({"1,nan"}), option + ": must be a number, not nan"));
    CHECK(refused(with({"1", "2"}), "does not take 2"));
  }
  if (troupe::usable_cores() < 2)
    return skip_case("needs two cores");
  const auto result = run_troupe(
    {"bench", "latency", "--gap-us", "1", "--gap-us", "2,3", "--rounds", "1",
     "--steps", "1", "--op-us", "1", "--idle-s", "0.001", "--json"});
  std::vector<double> gaps;
  for (const auto& line : lines_of(result.out))
    if (const auto said = nlohmann::json::parse(line); said.contains("gap_us"))
      gaps.push_back(said["gap_us"]);
  CHECK(gaps == std::vector<double>{1, 2, 3});
}

TEST_CASE("an option that takes a list may be given several times") {
  const auto engines = [](const std::vector<std::string>& words) {
    std::vector<std::string> names;
    for (const auto& line : lines_of(run_troupe(words).out))
      names.push_back(nlohmann::json::parse(line)["engine"]);
    return names;
  };
  CHECK(engines({"bench", "tasks", "--engine", "openmp", "--engine",
                 "troupe,ready_queue", "--width", "2", "--steps", "2",
                 "--repeat", "1", "--sample-ms", "1", "--json"})
        == std::vector<std::string>{"openmp", "troupe", "ready_queue"});
  CHECK(engines({"bench", "steps", "mlp", "--engine", "ready_queue", "--engine",
                 "troupe", "--repeat", "1", "--sample-ms", "1", "--json"})
        == std::vector<std::string>{"ready_queue", "troupe"});
  CHECK(fails_with(
    run_troupe({"bench", "tasks", "--engine", "troupe", "--engine", "troupe"}),
    2, {"--engine: troupe is there twice"}));
  const auto delayed = run_troupe(
    {"bench", "schedule", "mlp", "--delay", "mul=1us", "--delay", "relu=10us",
     "--repeat", "1", "--sample-ms", "1", "--devices", "cpu:1", "--json"});
  const double work = nlohmann::json::parse(delayed.out)["work_ms"];
  CHECK(work > 0.02); // both delays count
  CHECK(fails_with(run_troupe({"bench", "schedule", "mlp", "--delay", "mul=1us",
                               "--delay", "mul=2us"}),
                   2, {"--delay: 'mul' is there twice"}));
}

TEST_CASE("numbers that no measurement has are answered with their rule") {
  const auto refused = [](std::vector<std::string> words,
                          const std::string& rule) {
    words.insert(words.begin(), "bench");
    return fails_with(run_troupe(words), 2, {rule + " (see troupe bench "});
  };
  const auto grid = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"bench", "tasks"});
    return run_troupe(words);
  };
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"tasks"},
        {"steps", "mlp"},
        {"schedule", "mlp"}}) {
    const auto with = [&](const char* option, const char* value) {
      auto words = command;
      words.insert(words.end(), {option, value});
      return words;
    };
    CHECK(refused(with("--repeat", "1e10"),
                  "--repeat: must be at most 1000000000, not 1e10"));
    CHECK(refused(with("--sample-ms", "1e300"),
                  "--sample-ms: must be at most 3600000, not 1e300"));
  }
  CHECK(refused({"tasks", "--grain", "2000000000"},
                "--grain: must be at most 1000000000, not 2000000000"));
  CHECK(refused({"latency", "--gap-us", "1e12"},
                "--gap-us: must be at most 1000000, not 1e12"));
  CHECK(refused({"latency", "--op-us", "1e-9"},
                "--op-us: must be from 0.001 to 1000000, not 1e-9"));
  CHECK(refused({"latency", "--rounds", "100000000"},
                "--rounds: must be at most 10000000, not 100000000"));
  CHECK(refused({"latency", "--steps", "100000000"},
                "--steps: must be at most 10000000, not 100000000"));
  CHECK(refused({"latency", "--idle-s", "1e5"},
                "--idle-s: must be from 0.001 to 3600, not 1e5"));
  CHECK(refused({"train", "mlp", "--steps", "1000000000"},
                "--steps: must be at most 100000000, not 1000000000"));
  CHECK(refused({"train", "mlp", "--warm-up", "1000000000"},
                "--warm-up: must be at most 100000000, not 1000000000"));
  CHECK(refused({"train", "mlp", "--seed", "-1"},
                "--seed: must not be negative, not -1"));
  CHECK(refused({"train", "mlp", "--save-start", ""},
                "--save-start: must not be empty"));
  CHECK(fails_with(grid({"--width", "100000", "--steps", "1000"}), 2,
                   {"--width x --steps: a grid has from 1 to 16777216 tasks"}));
  CHECK(fails_with(grid({"--pattern", "nearest", "--radix", "99"}), 2,
                   {"--radix: must be from 0 to the width"}));
  CHECK(fails_with(grid({"--pattern", "no_such"}), 2, {"no_such"}));
}

TEST_CASE("bench names what it does not know") {
  CHECK(fails_with(run_troupe({"bench", "tasks", "--engine", "magic"}), 2,
                   {"magic"}));
  CHECK(fails_with(run_troupe({"bench", "steps", "mlp", "--engine", "magic"}),
                   2, {"magic"}));
  CHECK(fails_with(run_troupe({"bench", "schedule", "no_such_net"}), 2,
                   {"no_such_net"}));
  CHECK(fails_with(run_troupe({"bench", "tasks", "--threads", "4096"}), 2,
                   {"--threads", "cores"}));
  CHECK(
    fails_with(run_troupe({"bench", "schedule", "mlp", "--threads", "4096"}), 2,
               {"--threads", "cores"}));
  CHECK(fails_with(run_troupe({"bench"}), 2, {}));
}

// Each of these measurements would take hours.
TEST_CASE("Ctrl-C ends a measurement in its middle with one line") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"train", "mlp", "--steps", "100000000"},
        {"steps", "mlp", "--repeat", "100000000"},
        {"schedule", "mlp", "--repeat", "100000000"},
        {"tasks", "--repeat", "100000000"}})
    check_stop(command);
}

TEST_CASE("Ctrl-C ends a measurement of latencies with one line") {
  if (troupe::usable_cores() < 2)
    return skip_case("needs two cores");
  check_stop({"latency", "--gap-us", "1000000"});
}

TEST_CASE("lines that a stopped measurement has printed are not lost") {
  if (troupe::usable_cores() < 2)
    return skip_case("needs two cores");
  // The first result comes soon, the second takes seconds.
  const auto result = run_troupe(
    {"bench", "latency", "--gap-us", "0,1000000", "--rounds", "20", "--json"},
    [](pid_t process, auto&) {
      return cpu_seconds(process) > 2 && ::kill(process, SIGINT) == 0;
    });
  CHECK(result.code == 1);
  REQUIRE(lines_of(result.out).size() == 1);
  CHECK(nlohmann::json::parse(result.out)["gap_us"] == 0);
}

} // TEST_SUITE("apps.bench")
