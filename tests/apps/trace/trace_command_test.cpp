// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

using namespace troupe::test;

TEST_SUITE("apps.trace") {

namespace {

using json = nlohmann::json;

/// Trains with a trace in `file`.
void record(const std::string& file, const words& more = {}) {
  const auto result = run_troupe(words{"train", "mlp", "--synthetic", "--batch",
                                       "8", "--steps", "12", "--threads", "1",
                                       "--devices", "cpu:1", "--trace", file}
                                 + more);
  INFO(result.err);
  REQUIRE(result.code == 0);
}

json answer_of(const words& command) {
  const auto result = run_troupe(words{"trace"} + command + words{"--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  return json::parse(lines_of(result.out).at(0));
}

} // namespace

TEST_CASE("a summary's parts add up") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  record(file);
  const auto s = answer_of({"summary", file});
  CHECK(s["level"] == "messages");
  CHECK(s["steps"] == 12);
  CHECK(s["steps_counted"] == 10);
  CHECK(s["op_steps"] == 10);
  CHECK(s["message_steps"] == 12);
  CHECK(s["events_lost"] == 0);
  CHECK(s["processes"][0]["complete"] == true);
  CHECK_FALSE(s["processes"][0]["phases"].empty());
  const auto& path = s["critical_path"];
  CHECK(path["compute_ns"].get<long>() + path["merging_ns"].get<long>()
          + path["worker_wait_ns"].get<long>() + path["ending_ns"].get<long>()
        == path["ns"].get<long>());
  double share = 0;
  for (const auto& t : s["op_times"])
    share += t["share"].get<double>();
  CHECK(share == doctest::Approx(1));
  REQUIRE(s["memory"].size() == 1);
  long held = 0;
  for (const auto& h : s["memory"][0]["holders"])
    held += h["bytes"].get<long>();
  CHECK(held == s["memory"][0]["peak_bytes"].get<long>());
  std::vector<std::string> phases;
  for (const auto& p : s["processes"][0]["phases"])
    phases.push_back(p["name"]);
  for (const auto* name :
       {"read program", "build graph", "check", "first step"})
    CHECK(std::ranges::count(phases, name) == 1);
  const auto text = run_troupe({"trace", "summary", file});
  CHECK(text.code == 0);
  for (const auto* part :
       {"critical path of step", "top ops by self time", "longest waits",
        "worker 0 idle",
        "messages in 12 steps: ", "memory of temporaries on cpu:0"}) {
    CAPTURE(part);
    CHECK(text.out.find(part) != std::string::npos);
  }
}

TEST_CASE("summary explains the step that is asked for, or the slowest") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  record(file);
  CHECK(answer_of({"summary", file, "--step", "5"})["critical_path"]["step"]
        == 5);
  const auto slowest = answer_of({"summary", file, "--slowest"});
  const auto& path = slowest["critical_path"];
  CHECK(path["step"] > 1); // the first two warm up
  for (auto step = 2; step < 12; ++step)
    CHECK(answer_of({"summary", file, "--step",
                     std::to_string(step)})["critical_path"]["ns"]
          <= path["ns"]);
  const auto text = run_troupe({"trace", "summary", file, "--slowest"}).out;
  CHECK(contains(text, ", the slowest: "));
  CHECK(
    contains(text, "what follows is of all steps that count, not of step "));
  CHECK(fails_with(run_troupe({"trace", "summary", file, "--step", "99"}), 2,
                   {"no step 99; the trace has steps 0 to 11"}));
  CHECK(fails_with(
    run_troupe({"trace", "summary", file, "--step", "1", "--slowest"}), 2,
    {"--slowest", "--step"}));
  for (const auto* word : {"x", "1.5", "-", "1e3"})
    CHECK(
      fails_with(run_troupe({"trace", "summary", file, "--step", word}), 2,
                 {"--step: must be a whole number, not " + std::string{word}}));
}

TEST_CASE("a step is predicted to last as much longer as its ops") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  record(file, {"--slow", "mul=3ms"});
  const auto change = [&](const std::string& cost) {
    const auto found =
      answer_of({"critical-path", file, "--what-if", "mul=" + cost});
    return found["predicted_ns"].get<double>()
           - found["replayed_ns"].get<double>();
  };
  // A forward pass has three, one after the other.  How far a replay is from
  // other runs depends on the machine: the benchmarks say.
  CHECK(change("+3ms") == doctest::Approx(3 * 3e6).epsilon(0.001));
  CHECK(change("x1") == doctest::Approx(0));
  CHECK(change("-2ms") == doctest::Approx(-3 * 2e6).epsilon(0.001));
}

TEST_CASE("costs are compared with the run's own, which are medians too") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt", costs = folder / "a.jsonl";
  record(file);
  std::ofstream{costs} << run_troupe({"trace", "costs", file, "--json"}).out;
  const auto found = answer_of({"critical-path", file, "--what-if", costs});
  CHECK(found["own_costs_ns"].get<double>()
        == doctest::Approx(found["predicted_ns"].get<double>()));
  const auto text =
    run_troupe({"trace", "critical-path", file, "--what-if", costs}).out;
  CHECK(contains(text, "costs are medians: with the run's own ones"));
  CHECK(contains(text, "0.0 % against that\n"));
  CHECK(found["ops_without_cost"] == 0);
  // The same of a file that has the costs of a few ops.
  std::istringstream rows{read_bytes(costs)};
  std::string of_relu;
  for (std::string row; std::getline(rows, row);)
    if (contains(row, "\"op_type\":\"relu\""))
      of_relu += row + "\n";
  std::ofstream{costs} << of_relu;
  const auto few = answer_of({"critical-path", file, "--what-if", costs});
  CHECK(few["own_costs_ns"].get<double>()
        == doctest::Approx(few["predicted_ns"].get<double>()));
  CHECK(few["ops_without_cost"] > 0);
}

TEST_CASE("diff tells two programs apart, in columns") {
  const temporary_folder folder;
  const std::string mlp = folder / "mlp.trt", lenet = folder / "lenet.trt";
  record(mlp);
  REQUIRE(run_troupe({"train", "lenet", "--synthetic", "--batch", "2",
                      "--steps", "12", "--trace", lenet})
            .code
          == 0);
  const auto types = run_troupe({"trace", "diff", mlp, lenet});
  CHECK(contains(types.out, " types only in A, "));
  const auto both = run_troupe({"trace", "diff", mlp, lenet, "--by", "op"});
  CHECK(contains(both.err, "note: A (train mlp) and B (train lenet) are "
                           "different programs: "));
  CHECK(contains(both.out, " only in B\n"));
  CHECK_FALSE(contains(both.out, "0.000"));
  const auto lines = lines_of(both.out);
  REQUIRE(lines.size() > 3);
  const auto column = lines[0].find("A: median");
  // Two lines of text follow if the steps are too few.
  for (std::size_t i = 1; i + 2 < lines.size(); ++i) {
    CAPTURE(lines[i]);
    CHECK(lines[i][column - 1] == ' ');
    CHECK(lines[i][column] != ' ');
  }
  CHECK_FALSE(contains(run_troupe({"trace", "diff", mlp, mlp}).err, "note"));
}

TEST_CASE("diff finds the op that became slow, and nothing in equal runs") {
  const temporary_folder folder;
  const std::string fast = folder / "fast.trt", slow = folder / "slow.trt";
  record(fast, {"--steps", "30"});
  record(slow, {"--steps", "30", "--slow", "mul=3ms"});
  const auto rows = [](const words& command) {
    std::vector<json> found;
    const auto result = run_troupe(words{"trace", "diff", "--json"} + command);
    for (const auto& text : lines_of(result.out))
      found.push_back(json::parse(text));
    return found;
  };
  const auto found = rows({fast, slow});
  REQUIRE(found.size() > 2);
  CHECK(found[0]["name"] == "step time");
  CHECK(found[0]["difference"] == "slower");
  CHECK(found[1]["name"] == "mul");
  CHECK(found[1]["difference"] == "slower");
  for (const auto& row : rows({fast, fast, "--by", "op"}))
    CHECK(row["difference"] == "no difference");
  const auto text = run_troupe({"trace", "diff", fast, fast});
  CHECK(text.out.find("no difference beyond the spread") != std::string::npos);
}

TEST_CASE("ranks of a job are brought onto one clock") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt", other = folder / "a.1.trt";
  const auto job =
    run_troupe({"launch", "--nodes", "2", "--", TROUPE_COMMAND, "train", "mlp",
                "--synthetic", "--batch", "8", "--steps", "12", "--threads",
                "1", "--trace", file});
  INFO(job.err);
  REQUIRE(job.code == 0);
  const auto s = answer_of({"summary", other, file});
  REQUIRE(s["processes"].size() == 2);
  CHECK(s["processes"][0]["process"] == 0);
  const auto offset = s["processes"][1]["clock_offset_ns"].get<long>();
  const auto uncertainty =
    s["processes"][1]["clock_uncertainty_ns"].get<long>();
  // Both have the same clock.
  CHECK(uncertainty >= 0);
  CHECK(std::abs(offset) <= uncertainty + 20'000);
  CHECK(s["overlap"].size() == 2);
  const auto text = run_troupe({"trace", "summary", other, file}).out;
  CHECK(contains(text, "start-up, of the slowest process each\n"));
  CHECK(contains(text, "  prepare (process "));
  const auto ranks = run_troupe({"trace", "diff", file, other});
  CHECK(ranks.code == 0);
  CHECK(ranks.err.find("A is of rank 0 of 2, B of rank 1 of 2")
        != std::string::npos);
  CHECK(fails_with(run_troupe({"trace", "summary", file, file}), 1,
                   {file + ", " + file, "not of one run", "process 0",
                    "troupe trace diff compares two runs"}));
}

TEST_CASE("a profile does not take a trace's events, nor a trace a profile's") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  const auto result =
    run_troupe({"train", "mlp", "--synthetic", "--batch", "8", "--steps", "12",
                "--threads", "1", "--devices", "cpu:1", "--trace", file,
                "--profile", "--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto profile = json::parse(lines_of(result.out).back())["profile"];
  CHECK(profile["steps"] == 10);
  CHECK(profile["ops"]["mul"]["count"] == 3);
  const auto s = answer_of({"summary", file});
  CHECK(s["steps"] == 12);
  CHECK(s["level"] == "messages");
  CHECK(s["events_lost"] == 0);
}

TEST_CASE("a low level says what needs a higher one") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  record(file, {"--trace-level", "steps"});
  const auto summary = run_troupe({"trace", "summary", file});
  CHECK(summary.code == 0);
  CHECK(summary.out.find("record with --trace-level ops") != std::string::npos);
  // A trace can begin later, by SIGUSR2, and have that level.
  CHECK(run_troupe({"train", "mlp", "--synthetic", "--steps", "1", "--devices",
                    "cpu:1", "--trace-level", "steps"})
          .code
        == 0);
  CHECK_FALSE(answer_of({"summary", file}).contains("op_times"));
  for (const words& command : {words{"costs", file}, {"critical-path", file}})
    CHECK(fails_with(run_troupe(words{"trace"} + command), 1,
                     {"a.trt", "--trace-level ops or messages"}));
  const auto steps = run_troupe({"trace", "diff", file, file});
  CHECK(steps.code == 0);
  CHECK(contains(steps.err, "only step times are compared"));
  CHECK(contains(steps.out, "step time"));
  CHECK_FALSE(contains(steps.out, "no difference beyond"));
  const std::string ops = folder / "ops.trt";
  record(ops);
  const auto one = run_troupe({"trace", "diff", ops, file});
  CHECK(one.code == 0);
  CHECK(contains(one.err, "note: B does not say when ops ran: only step times "
                          "are compared"));
  CHECK(lines_of(one.out).size() == lines_of(steps.out).size());
}

TEST_CASE("a file that ends before its graph has only a summary") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt", cut = folder / "cut.trt";
  const auto line =
    "troupe: " + cut
    + ": ends before the graph is known: nothing was recorded\n";
  record(file);
  for (const auto bytes : {16, 100}) {
    write_bytes(cut, read_bytes(file).substr(0, bytes));
    for (const auto& more : {words{}, words{"--json"}}) {
      const auto result = run_troupe(words{"trace", "summary", cut} + more);
      CHECK(result.code == 0);
      CHECK(contains(result.out, "nothing was recorded") == more.empty());
      CHECK_FALSE(contains(result.out, "no step was recorded with all"));
      if (!more.empty())
        CHECK(json::parse(result.out)["level"].is_null());
      CHECK(result.err == line);
    }
    for (const words& command :
         {words{"summary", "--json", file, cut},
          {"costs", cut},
          {"diff", file, cut},
          {"report", cut, "--out", folder / "out"},
          {"export", "--format", "csv", cut, "--out", folder / "out"}}) {
      const auto result = run_troupe(words{"trace"} + command);
      CHECK(result.code == 1);
      CHECK(result.out == "");
      CHECK(result.err == line);
    }
  }
  CHECK(folder.entries() == 2);
}

TEST_CASE("a place that cannot be written is refused before anything runs") {
  const temporary_folder folder;
  const std::string missing = folder / "none/a.trt";
  const auto refused = [&](const std::string& place, const std::string& why) {
    const auto line = "troupe: cannot write " + place + ": " + why + "\n";
    for (const auto* before :
         {"troupe train mlp --synthetic --trace ", "TROUPE_TRACE="}) {
      const bool is_variable = before[0] == 'T';
      const auto result = run_in(
        folder, is_variable
                  ? before + place + " troupe train mlp --synthetic --steps 1"
                  : before + place + " --steps 1");
      CHECK(result.code == 1);
      CHECK(result.err == line); // no trial of devices
    }
  };
  refused(folder.path(), "Is a directory");
  refused(missing, "there is no folder " + (folder / "none").string());
  refused("/dev/full", "No space left on device");
  CHECK(folder.entries() == 0);
}

TEST_CASE("TROUPE_TRACE is for the training, not for its held-out tests") {
  const temporary_folder folder;
  const auto result =
    run_in(folder, "TROUPE_TRACE=a.trt troupe train digits --steps 3 --devices "
                   "cpu:1 --data " TROUPE_DATA "/digits");
  INFO(result.err);
  REQUIRE(result.code == 0);
  REQUIRE(contains(result.out, "held_out_accuracy"));
  const auto s = answer_of({"summary", folder / "a.trt"});
  CHECK(s["command"] == "train digits");
  CHECK(s["steps"] == 3);
  CHECK(s["processes"][0]["unread_bytes"] == 0);
}

TEST_CASE("the trace of an evaluation names its command") {
  const temporary_folder folder;
  const auto result =
    run_in(folder, "troupe train digits --steps 1 --devices cpu:1 --save saved "
                   "--data " TROUPE_DATA
                   "/digits && TROUPE_TRACE=a.trt troupe eval digits "
                   "--steps 1 --params saved --data " TROUPE_DATA "/digits");
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(answer_of({"summary", folder / "a.trt"})["command"] == "eval digits");
}

TEST_CASE("a critical path and costs list what takes most of the time") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  record(file, {"--slow", "mul=20ms"});
  for (const auto* command : {"critical-path", "costs"}) {
    CAPTURE(command);
    const auto listed = [&](const words& more) {
      const auto result = run_troupe(words{"trace", command, file} + more);
      INFO(result.err);
      CHECK(result.code == 0);
      return result.out;
    };
    const auto usual = listed({});
    CHECK(contains(usual, "mul"));
    CHECK(contains(usual, " more, together "));
    const auto one = listed({"--top", "1"});
    CHECK(lines_of(one).size() < lines_of(usual).size());
    CHECK(contains(one, "mul"));
    const auto all = listed({"--top", "1000"});
    CHECK(lines_of(all).size() > lines_of(usual).size());
    CHECK_FALSE(contains(all, " more, together "));
  }
}

TEST_CASE("a cut file is read up to there, and says so") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt", cut = folder / "cut.trt";
  record(file);
  const auto whole = read_bytes(file);
  write_bytes(cut, whole.substr(0, whole.size() - 20));
  const auto result = run_troupe({"trace", "summary", cut});
  CHECK(result.code == 0);
  CHECK(result.err.find("cut.trt: cut or damaged, the last")
        != std::string::npos);
  CHECK(result.out.find("file cut or damaged") != std::string::npos);
  CHECK(result.out.find("without closing") == std::string::npos);
  CHECK(lines_of(result.err).size() == 1);
}

TEST_CASE("a file that is cut in the first step lacks no level") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt", cut = folder / "cut.trt";
  record(cut, {"--steps", "1", "--trace-level", "steps"});
  const auto up_to_graph = read_bytes(cut).size(); // and a bit more
  record(file);
  write_bytes(cut, read_bytes(file).substr(0, up_to_graph));
  for (const words& command : {words{"costs", cut},
                               {"critical-path", cut},
                               {"diff", cut, file},
                               {"summary", cut, "--slowest"},
                               {"summary", cut, "--step", "1"}})
    CHECK(fails_with(run_troupe(words{"trace"} + command), 1,
                     {"cut.trt: ends before a step has ended"}));
}

TEST_CASE("a file that its process did not close is whole, and says so") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  record(file);
  const auto whole = read_bytes(file);
  write_bytes(file, whole.substr(0, whole.size() - 16)); // the last block
  const auto result = run_troupe({"trace", "summary", file});
  CHECK(result.code == 0);
  CHECK(result.err == "");
  CHECK(result.out.find("ended without closing the file") != std::string::npos);
}

TEST_CASE("files that are no trace are refused with one line") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  const auto refused = [&](const std::vector<std::string>& parts) {
    const auto result = run_troupe({"trace", "summary", file});
    CHECK(fails_with(result, 1, parts));
    CHECK(lines_of(result.err).size() == 1);
  };
  refused({"a.trt", "No such file"});
  write_bytes(file, "no trace of anything at all");
  refused({"a.trt", "not a trace of Troupe"});
  record(file);
  auto bytes = read_bytes(file);
  bytes[8] = 9; // the version
  write_bytes(file, bytes);
  refused({"a.trt", "newer version", "format 9"});
  if (::geteuid() != 0) { // root may read everything
    std::filesystem::permissions(file, std::filesystem::perms::none);
    refused({"a.trt", "Permission denied"});
  }
}

TEST_CASE("wrong words are refused as a wrong command line") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  record(file);
  CHECK(fails_with(run_troupe({"trace"}), 2, {"a command is missing"}));
  CHECK(fails_with(run_troupe({"trace", "sumary", file}), 2, {"sumary"}));
  CHECK(fails_with(run_troupe({"trace", "summary"}), 2, {"F.trt"}));
  CHECK(fails_with(
    run_troupe({"trace", "critical-path", file, "--what-if", "mul=2"}), 2,
    {"--what-if", "'mul=2'", "TYPE=x0.5"}));
  CHECK(fails_with(
    run_troupe({"trace", "critical-path", file, "--what-if", "moon=x2"}), 2,
    {"--what-if: ", "'moon'", "a type and a name such as"}));
  CHECK(fails_with(
    run_troupe({"trace", "critical-path", file, "--what-if", "moon"}), 2,
    {"--what-if: neither TYPE=x0.5", "'moon'"}));
  CHECK(fails_with(
    run_troupe({"trace", "critical-path", file, "--what-if", "no.jsonl"}), 1,
    {"--what-if: no.jsonl: No such file or directory"}));
  const auto refused = [&](const std::string& list,
                           const std::vector<std::string>& parts) {
    CHECK(fails_with(
      run_troupe({"trace", "critical-path", file, "--what-if", list}), 2,
      parts));
  };
  refused("mul=x0.5,", {"--what-if", "an entry of 'mul=x0.5,' is empty"});
  refused("mul=x1e308", {"--what-if", "'mul=x1e308': must be at most x1"});
  refused("mul=1e300s", {"--what-if", "'mul=1e300s': must be at most 1"});
  refused("", {"--what-if"});
  CHECK(fails_with(run_troupe({"trace", "critical-path", file, "--step", ""}),
                   2, {"--step"}));
  for (const auto* command : {"summary", "critical-path"})
    for (const std::string step :
         {"99", "4294967296", "-1", "100000000000000000000"})
      CHECK(fails_with(
        run_troupe({"trace", command, file, "--step", step}), 2,
        {"--step: no step " + step + "; the trace has steps 0 to 11"}));
  CHECK(fails_with(run_troupe({"trace", "diff", file, ""}), 2, {"B.trt"}));
  CHECK(fails_with(run_troupe({"trace", "diff", file, file, "--by", "moon"}), 2,
                   {"--by: moon not in {op,type}"}));
}

} // TEST_SUITE("apps.trace")
