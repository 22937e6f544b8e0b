// SPDX-License-Identifier: Apache-2.0
#include "trace/export/hand_made_trace.hpp"

#include <troupe/trace/export/trace_export.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.export.formats") {

namespace {

std::string exported(const std::vector<process_trace>& traces,
                     export_format format) {
  const temporary_folder folder;
  export_trace(traces, format, folder / "file");
  return read_bytes(folder / "file");
}

} // namespace

TEST_CASE("csv has a line per slice of an op") {
  // In the order in which slices end.
  CHECK(
    exported({one_step()}, export_format::csv)
    == R"(process,kind,track,step,op,type,device,stream,shape,ready_ns,begin_ns,end_ns,duration_ns,waited_for,is_cut
0,help,worker 1,0,conv2d#0@cpu:0,conv2d,cpu:0,compute,"[-1, 3]; [4, 3]",,3200,3800,600,,0
0,run,worker 0,0,conv2d#0@cpu:0,conv2d,cpu:0,compute,"[-1, 3]; [4, 3]",2110,3000,4000,1000,,0
0,run,worker 1,0,momentum#1@cpu:0,momentum,cpu:0,collective,,4000,4500,5000,500,"a,""b"":v1@cpu:0",0
0,merge,worker 1,0,momentum#1@cpu:0,momentum,cpu:0,collective,,,4500,4700,200,,0
)");
}

TEST_CASE("dot has the graph, with mean times and runs on its nodes") {
  auto t = one_step();
  event_list{t}.on(0, 1).run(4000, 6000, conv);
  CHECK(exported({t}, export_format::dot) == R"(digraph troupe {
  subgraph cluster_0 {
    label="cpu:0";
    h0 [shape=box, label="conv2d#0@cpu:0\n1.500 us x 2", style=filled, fillcolor="0.000 1.000 1.000"];
    h1 [shape=ellipse, label="a,\"b\":v1@cpu:0"];
    h2 [shape=box, label="momentum#1@cpu:0\n0.500 us x 1", style=filled, fillcolor="0.000 0.167 1.000"];
  }
  h0 -> h1;
  h1 -> h2;
  h2 -> h0 [label="+1", color=blue, constraint=false];
}
)");
}

TEST_CASE("dot adds the times of ranks") {
  const auto text =
    exported({one_step(), of_rank(1, one_step())}, export_format::dot);
  CHECK(contains(text, "conv2d#0@cpu:0\\n1.000 us x 2"));
}

TEST_CASE("traces that are not of one run are refused in each format") {
  const temporary_folder folder;
  auto other = of_rank(1, one_step());
  other.graph.handles[conv].name = "conv2d#9";
  for (std::size_t i = 0; i < export_format_names.size(); ++i) {
    CAPTURE(export_format_names[i]);
    const auto refused = [&](const std::vector<process_trace>& traces) {
      return caught([&] {
        export_trace(traces, static_cast<export_format>(i), folder / "f");
      });
    };
    const auto twice = refused({one_step(), one_step()});
    CHECK(twice.code() == errc::invalid_argument);
    CHECK(says(twice, "both are of process 0"));
    CHECK(says(refused({one_step(), other}), "ran another graph"));
  }
  CHECK(folder.entries() == 0);
}

TEST_CASE("ranks are shown by their number, on the clock that their "
          "collectives give") {
  // momentum is a collective of both: the end of one call bounds the other's
  // begin. The second host's clock is 1 ms ahead.
  const auto two_devices = [](std::size_t rank) {
    auto t = of_rank(rank, two_ops());
    t.graph.devices = {"cpu:0", "cpu:1"};
    t.graph.process_of_device = {0, 1};
    t.graph.handles[update].name = "all_reduce#1@cpu:0";
    t.graph.handles[update].type = "all_reduce";
    auto second = t.graph.handles[update];
    second.name = "all_reduce#1@cpu:1";
    second.device = 1;
    t.graph.handles.push_back(second);
    return t;
  };
  auto first = two_devices(0), second = two_devices(1);
  event_list{first}.run(1000, 1500, update);
  event_list{second}.run(1000, 1500, update + 1);
  second.run.host = "host-b";
  second.run.begin_unix_ns += 1'000'000;
  const auto text = exported({second, first}, export_format::csv);
  const auto row = [&](const std::string& begin) {
    const auto at = text.find("\n" + begin) + 1;
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(contains(row("0,run"), ",1000,1500,500,"));
  CHECK(contains(row("1,run"), ",1000,1500,500,"));
}

TEST_CASE("speedscope has a profile per track, whose frames are nested") {
  using json = nlohmann::json;
  auto first = one_step(); // with runs that follow each other at once
  event_list{first}.on(0, 1).run(4000, 5000, conv).run(5000, 6000, update);
  const auto file = json::parse(
    exported({first, of_rank(1, one_step())}, export_format::speedscope));
  CHECK(file.at("$schema")
        == "https://www.speedscope.app/file-format-schema.json");
  CHECK(file.at("shared").at("frames").size() == 6);
  REQUIRE(file.at("profiles").size() == 4);
  std::size_t opened = 0;
  for (auto& p : file["profiles"]) {
    CHECK(p.at("type") == "evented");
    CHECK(p.at("unit") == "nanoseconds");
    std::vector<json> open;
    auto last = p.at("startValue");
    for (auto& e : p.at("events")) {
      CHECK(last <= e.at("at"));
      last = e["at"];
      CHECK(e.at("frame") < 6);
      if (e.at("type") == "O") {
        open.push_back(e["frame"]);
        ++opened;
        continue;
      }
      REQUIRE_FALSE(open.empty());
      CHECK(open.back() == e["frame"]);
      open.pop_back();
    }
    CHECK(open.empty());
    CHECK(last == p.at("endValue"));
  }
  CHECK(opened == 10);
  CHECK(file["profiles"][3]["name"] == "rank 1, worker 1");
  CHECK(file["profiles"][3]["events"][0]["frame"] == 3); // of its own graph
}

TEST_CASE("a file that cannot be written is named, and nothing is left") {
  const temporary_folder folder;
  for (std::size_t i = 0; i < export_format_names.size(); ++i) {
    const auto format = static_cast<export_format>(i);
    if (!is_built_in(format))
      continue;
    CAPTURE(export_format_names[i]);
    const auto missing = folder / "no/such/folder";
    const auto thrown =
      caught([&] { export_trace(std::vector{one_step()}, format, missing); });
    CHECK(thrown.code() == errc::io_failure);
    CHECK(says(thrown, missing.string()));
    {
      // A full disk: the trace is larger than what may be written.
      auto large = one_step();
      large.graph.handles[conv].name = std::string(200'000, 'x');
      const file_size_limit limit{20'000};
      CHECK(caught([&] {
              export_trace(std::vector{large}, format, folder / "full");
            }).code()
            == errc::io_failure);
    }
    CHECK(folder.entries() == 0);
  }
}

TEST_CASE("a format that does not exist is named with those that do") {
  const auto thrown = caught([] { parse_export_format("html"); });
  CHECK(thrown.code() == errc::invalid_argument);
  CHECK(says(thrown, "unknown format 'html'; formats are chrome, perfetto, "
                     "sqlite, dot, csv, speedscope"));
  for (auto name : export_format_names)
    CHECK(
      export_format_names[static_cast<std::size_t>(parse_export_format(name))]
      == name);
}

TEST_CASE("nothing to export is refused") {
  const temporary_folder folder;
  CHECK(
    caught([&] { export_trace({}, export_format::csv, folder / "f"); }).code()
    == errc::invalid_argument);
}
} // TEST_SUITE("trace.export.formats")
