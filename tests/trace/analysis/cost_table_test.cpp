// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"

#include <troupe/trace/analysis/cost_table.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.cost_table") {

TEST_CASE("costs are by type, shapes and device, without waits for ranks") {
  made_trace t{2, 2};
  t.graph().process_of_device = {0, 1};
  const auto r0 = t.op("all_reduce", 0, true), r1 = t.op("all_reduce", 1, true);
  const auto a = t.op("mul"), b = t.op("mul"), other = t.op("mul");
  t.graph().handles[b].name = "mul#2@0";
  t.graph().handles[other].shape = "[2]";
  for (std::uint32_t s = 0; s < 12; ++s) {
    const std::uint64_t at = s * 1000;
    t.step(s, at, at + 1000);
    t.run(r0, s, 0, at, at + 900).run(r1, s, 1, at + 800, at + 900);
    t.run(a, s, 0, at + 900, at + 910).run(b, s, 0, at + 910, at + 930);
    t.run(other, s, 1, at + 900, at + 1000);
    t.event(event_kind::allocation, at + 910, a, s, 0, r0, 64);
  }
  const std::vector<process_trace> parts{t.done()};
  const timeline all{parts};
  const op_graph graph{parts[0].graph};
  const auto costs = cost_table::measure(parts, all, graph);
  REQUIRE(costs.rows().size() == 6); // those of `a` and `b` and of both
  const auto* both = costs.find(parts[0].graph, a);
  REQUIRE(both);
  CHECK(both->op == parts[0].graph.handles[a].name);
  CHECK(both->ns == 10);
  CHECK(costs.find(parts[0].graph, b)->ns == 20);
  const auto row = std::ranges::find_if(costs.rows(), [](const op_cost& r) {
    return r.key.type == "mul" && r.op.empty() && r.key.shapes.empty();
  });
  REQUIRE(row != costs.rows().end());
  CHECK(row->ops == 0);    // both have rows of their own
  CHECK(row->count == 20); // 10 steps that count
  CHECK(row->ns == 15);
  CHECK(row->runs.median == 15);
  CHECK(row->bytes == 32);
  CHECK(costs.find(parts[0].graph, other)->key.shapes == "[2]");
  CHECK(costs.find(parts[0].graph, r0)->ns == 100);
  CHECK(costs.find(parts[0].graph, r1)->ns == 100);
}

TEST_CASE("an op that takes longer than those alike is not in their row") {
  made_trace t{2, 1};
  const std::vector<handle_id> ops{t.op("mul"), t.op("mul"), t.op("mul")};
  const auto slow = ops.back();
  t.graph().handles[slow].name = "mul#2@0";
  for (std::uint32_t s = 0; s < 12; ++s) {
    const std::uint64_t at = s * 1000;
    t.step(s, at, at + 1000);
    for (std::size_t i = 0; i < ops.size(); ++i)
      t.run(ops[i], s, 0, at + i * 100,
            at + i * 100 + (ops[i] == slow ? 50 : 10));
  }
  const std::vector<process_trace> parts{t.done()};
  const auto& g = parts[0].graph;
  const auto costs = cost_table::measure(parts, timeline{parts}, op_graph{g});
  CHECK(costs.find(g, slow)->ns == 50);
  CHECK(costs.find(g, ops[0])->ns == 10);
  CHECK(costs.find(g, ops[0])->ops == 2);
  double work_ns = 0;
  for (const auto& row : costs.rows())
    work_ns += row.ns * static_cast<double>(row.ops);
  CHECK(work_ns == 70); // of a step
}

TEST_CASE("ops that do different work have costs of their own") {
  made_trace t{2, 1};
  const auto plain = t.op("conv2d"), wide = t.op("conv2d"),
             half = t.op("conv2d"), same = t.op("conv2d"),
             there = t.op("conv2d", 1);
  t.graph().handles[wide].attributes = "strides=[2, 2]";
  t.graph().handles[half].results = "[8]"; // of two outputs only one
  const std::vector<handle_id> ops{plain, wide, half, same, there};
  for (std::uint32_t s = 0; s < 6; ++s) {
    const std::uint64_t at = s * 1000;
    t.step(s, at, at + 1000);
    for (std::size_t i = 0; i < ops.size(); ++i)
      t.run(ops[i], s, 0, at + i * 100, at + i * 100 + 10 + i % 3);
  }
  const std::vector<process_trace> parts{t.done()};
  const auto& g = parts[0].graph;
  const auto costs = cost_table::measure(parts, timeline{parts}, op_graph{g});
  CHECK(costs.find(g, plain) == costs.find(g, same));
  CHECK(costs.find(g, plain)->ops == 2);
  for (auto op : {wide, half, there}) {
    CHECK(costs.find(g, op) != costs.find(g, plain));
    CHECK(costs.find(g, op)->ops == 1);
  }
  // Another graph, in which names say nothing and devices are more.
  auto more = g;
  more.devices.emplace_back("cpu:2");
  more.handles[plain].device = 2;
  CHECK(costs.find(more, plain) == costs.find(g, plain));
  more.handles[plain].type = "relu";
  CHECK_FALSE(costs.find(more, plain));
}

TEST_CASE("costs can be written and read, and bad lines are named") {
  op_cost row;
  row.key = {"conv2d", "strides=[2, 2]", "[-1, 3]; [8, 3]", "[-1, 8]", "cpu:1"};
  row.op = "conv2d#4@cpu:1";
  row.ops = 1;
  row.count = 12;
  row.ns = 1234.5;
  row.runs = {1000, 1234.5, 2000};
  row.bytes = 64;
  const temporary_folder folder;
  const auto file = folder / "costs.jsonl";
  write_bytes(file, to_json(row) + "\n\n");
  const auto read = cost_table::read(file);
  REQUIRE(read.rows().size() == 1);
  const auto& same = read.rows()[0];
  CHECK(same.key == row.key);
  CHECK(same.op == row.op);
  CHECK(same.ns == row.ns);
  CHECK(same.runs.three_quarters == 2000);
  CHECK(same.bytes == 64);
  const auto why = [&](const std::string& text) {
    write_bytes(file, text);
    return caught([&] { cost_table::read(file); });
  };
  for (const std::string bad :
       {"conv2d=1us", "{}", "[]", "3", R"({"op_type": 3})", "\xff"}) {
    CAPTURE(bad);
    const auto e = why(to_json(row) + "\n" + bad);
    CHECK(e.code() == errc::bad_file);
    CHECK(contains(e.message(), "line 2: not a line of troupe trace costs"));
  }
  const auto line = [&](const std::string& key, const std::string& value) {
    auto made = nlohmann::json::parse(to_json(row));
    made[key] = nlohmann::json::parse(value);
    return why(made.dump()).message();
  };
  CHECK(contains(why(R"({"op": )").message(), ": no JSON at byte 8"));
  CHECK(contains(why("[1]").message(), ": no object with keys"));
  CHECK(contains(why("{}").message(), ": 'op_type' is missing"));
  CHECK(contains(line("shapes", "[1]"), ": 'shapes' is no text"));
  CHECK(contains(line("op", "1"), ": 'op' is no text"));
  CHECK(contains(line("ns", "null"), ": 'ns' is no number"));
  CHECK(contains(line("ops", "\"1\""), ": 'ops' is no number"));
  CHECK(contains(line("count", "-1"), ": 'count' is out of range"));
  auto far = row;
  far.ns = 1e300;
  CHECK(contains(why(to_json(far)).message(), "'ns' is out of range"));
  CHECK(contains(why("\n").message(), "has no costs"));
  CHECK(caught([&] { cost_table::read(folder / "none"); }).code()
        == errc::not_found);
}

} // TEST_SUITE("trace.cost_table")
