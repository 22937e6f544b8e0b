// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <troupe/apps/bench/task_engine.hpp>
#include <troupe/apps/bench/task_graph.hpp>
#include <troupe/base/error.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace troupe::apps;
using namespace troupe::test;

namespace {

std::vector<std::uint32_t> before(const task_graph& g, std::size_t task) {
  return {g.before(task).begin(), g.before(task).end()};
}

using tasks = std::vector<std::uint32_t>;

/// Whether an engine's library takes part in what the sanitizers watch; leaks
/// of its own are none of ours.
bool can_be_watched([[maybe_unused]] std::string_view engine) {
#if defined(__SANITIZE_ADDRESS__)
  return engine != "onetbb" && engine != "openmp";
#else
  return true;
#endif
}

/// Wraps an engine's work in a way that leaves out what task 0 waits for.
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

} // namespace

TEST_SUITE("apps.bench") {

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
  CHECK_NOTHROW(make_task_graph({"stencil_1d", 2, 4, 3})); // has no radix
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

TEST_CASE("bench names what it does not know") {
  CHECK(fails_with(run_troupe({"bench", "tasks", "--engine", "magic"}), 2,
                   {"magic"}));
  CHECK(fails_with(run_troupe({"bench", "schedule", "no_such_net"}), 1,
                   {"no_such_net"}));
  CHECK(fails_with(run_troupe({"bench", "tasks", "--threads", "100000"}), 2,
                   {"--threads", "cores"}));
  CHECK(
    fails_with(run_troupe({"bench", "schedule", "mlp", "--threads", "100000"}),
               2, {"--threads", "cores"}));
  CHECK(fails_with(run_troupe({"bench"}), 2, {}));
}

} // TEST_SUITE("apps.bench")
