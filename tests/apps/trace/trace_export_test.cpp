// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using namespace troupe::test;

TEST_SUITE("apps.trace_export") {

namespace {

/// A folder with the trace of a short run.
struct traced_run {
  temporary_folder folder;
  std::string trace = folder / "t.trt";

  traced_run() {
    const auto result = run_troupe(
      {"train", "mlp", "--synthetic", "--steps", "2", "--trace", trace});
    INFO(result.err);
    REQUIRE(result.code == 0);
  }
};

/// Formats that need a library that the build lacks are not offered.
bool offers(const std::string& format) {
  return contains(run_troupe({"trace", "export", "--help"}).out, format);
}

std::size_t lines_in(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

} // namespace

TEST_CASE("an export says that the level of the trace lacks what it is for") {
  const temporary_folder folder;
  const std::string file = folder / "t.trt", out = folder / "out";
  const auto told = [&](const std::string& level, const std::string& format) {
    REQUIRE(
      run_troupe({"train", "mlp", "--synthetic", "--steps", "2", "--devices",
                  "cpu:1", "--trace", file, "--trace-level", level})
        .code
      == 0);
    const auto result =
      run_troupe({"trace", "export", "--format", format, file, "--out", out});
    CHECK(result.code == 0);
    return result.err;
  };
  CHECK(told("steps", "csv")
        == "note: " + file
             + ": level steps: it has no ops and no messages; record with "
               "--trace-level ops or messages\n");
  CHECK(told("ops", "csv")
        == "note: " + file
             + ": level ops: it has no messages; record with --trace-level "
               "messages\n");
  CHECK(told("steps", "dot")
        == "note: " + file
             + ": level steps: it has no ops; record with --trace-level ops or "
               "messages\n");
  CHECK(told("ops", "dot").empty());
}

TEST_CASE(
  "a run's trace is exported in each format, and says how large it is") {
  const traced_run run;
  for (const char* format :
       {"chrome", "perfetto", "sqlite", "dot", "csv", "speedscope"}) {
    CAPTURE(format);
    const std::string out = run.folder / format;
    const auto result = run_troupe({"trace", "export", "--format", format,
                                    run.trace, "--out", out, "--json"});
    if (!offers(format)) {
      CHECK(contains(result.err, "--format: sqlite not in {chrome,perfetto,"));
      continue;
    }
    CHECK(result.code == 0);
    CHECK(result.err == "");
    const auto line = nlohmann::json::parse(result.out);
    CHECK(line.at("file") == out);
    CHECK(line.at("bytes") == read_bytes(out).size());
    CHECK(line.at("events") > 100);
  }
}

TEST_CASE("traces of several ranks go into one file, those of two runs do "
          "not") {
  const temporary_folder folder;
  const std::string first = folder / "t.trt", second = folder / "t.1.trt";
  const std::string out = folder / "f.csv";
  for (const std::string& file :
       std::array<std::string, 2>{first, folder / "other.trt"}) {
    const auto job =
      run_troupe({"launch", "--nodes", "2", "--", TROUPE_COMMAND, "train",
                  "mlp", "--synthetic", "--batch", "8", "--steps", "2",
                  "--threads", "1", "--trace", file});
    INFO(job.err);
    REQUIRE(job.code == 0);
  }
  const auto lines_of_files = [&](const words& files) {
    const auto result = run_troupe(
      words{"trace", "export", "--format", "csv", "--out", out} + files);
    INFO(result.err);
    CHECK(result.code == 0);
    return lines_in(read_bytes(out)) - 1;
  };
  CHECK(lines_of_files({second, first})
        == lines_of_files({first}) + lines_of_files({second}));
  CHECK(fails_with(run_troupe({"trace", "export", "--format", "csv", first,
                               first, "--out", out}),
                   1, {first + ", " + first, "not of one run"}));
  const std::string of_other = folder / "other.1.trt";
  CHECK(fails_with(run_troupe({"trace", "export", "--format", "csv", first,
                               of_other, "--out", out}),
                   1,
                   {first + ", " + of_other
                    + ": the traces are not of one run: they are of two jobs, "
                      "or of two epochs of an elastic one"}));
}

TEST_CASE("a report is a page about the run") {
  const traced_run run;
  const std::string page = run.folder / "t.html";
  const auto result = run_troupe({"trace", "report", run.trace, "--out", page});
  CHECK(result.code == 0);
  CHECK(contains(result.out, page + ": "));
  CHECK(contains(read_bytes(page), "2 steps, of which 2 count: median"));
}

TEST_CASE("a damaged trace is written up to the damage, which is told") {
  const traced_run run;
  const std::string cut = run.folder / "cut.trt", out = run.folder / "out";
  const auto whole = read_bytes(run.trace);
  for (const std::size_t lost : {20, 3000}) { // maybe all events, not the head
    CAPTURE(lost);
    write_bytes(cut, whole.substr(0, whole.size() - lost));
    for (const auto& command :
         {words{"export", "--format", "csv"}, words{"report"}}) {
      const auto result =
        run_troupe(words{"trace"} + command + words{cut, "--out", out});
      CHECK(result.code == 0);
      CHECK(lines_in(result.err) == 1);
      CHECK(contains(result.err, cut + ": cut or damaged"));
    }
  }
}

TEST_CASE("what is no trace is refused in one line") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt", out = folder / "out";
  write_bytes(file, "not a trace, but long enough for its head");
  for (const auto& command :
       {words{"export", "--format", "csv"}, words{"report"}}) {
    const auto with = [&](const std::string& trace) {
      return run_troupe(words{"trace"} + command + words{trace, "--out", out});
    };
    auto result = with(file);
    CHECK(result.code == 1);
    CHECK(result.err == "troupe: " + file + ": not a trace of Troupe\n");
    result = with(folder / "missing.trt");
    CHECK(result.code == 1);
    CHECK(lines_in(result.err) == 1);
    CHECK(contains(result.err, "missing.trt"));
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("wrong command lines say what is wrong") {
  const auto refused = [](const words& more, const std::string& why) {
    CAPTURE(more);
    const auto result = run_troupe(words{"trace"} + more);
    CHECK(result.code == 2);
    CHECK(lines_in(result.err) == 1);
    CHECK(contains(result.err, why));
  };
  refused({}, "a command is missing");
  refused({"export", "--format", "csv", "--out", "f"}, "F.trt is required");
  refused({"export", "a.trt", "--out", "f"}, "--format is required");
  refused({"export", "a.trt", "--format", "csv"}, "--out is required");
  refused({"export", "a.trt", "--format", "xml", "--out", "f"},
          offers("sqlite")
            ? "--format: xml not in {chrome,perfetto,sqlite,dot,csv,speedscope}"
            : "--format: xml not in {chrome,perfetto,dot,csv,speedscope}");
  refused({"report", "a.trt", "--out", ""}, "--out");
  refused({"report", "--out", "f"}, "F.trt is required");
  refused({"exprt"}, "unknown command 'trace exprt'");
}

TEST_CASE("an output that would replace the trace is refused") {
  const traced_run run;
  const auto before = read_bytes(run.trace);
  for (const auto& command :
       {words{"export", "--format", "csv"}, words{"report"}}) {
    const auto result = run_troupe(words{"trace"} + command
                                   + words{run.trace, "--out", run.trace});
    CHECK(result.code == 2);
    CHECK(contains(result.err, "--out"));
  }
  CHECK(read_bytes(run.trace) == before);
}

TEST_CASE("an output in a folder that does not exist or may not be written is "
          "named") {
  const traced_run run;
  const std::string missing = run.folder / "none/f.csv";
  auto result = run_troupe(
    {"trace", "export", "--format", "csv", run.trace, "--out", missing});
  CHECK(result.code == 1);
  CHECK(lines_in(result.err) == 1);
  CHECK(contains(result.err, missing));
  if (::geteuid() == 0)
    return; // root may write anywhere
  const std::string locked = run.folder / "locked";
  REQUIRE(::mkdir(locked.c_str(), 0500) == 0);
  result = run_troupe({"trace", "export", "--format", "csv", run.trace, "--out",
                       locked + "/f.csv"});
  CHECK(result.code == 1);
  CHECK(contains(result.err, "Permission denied"));
}

} // TEST_SUITE("apps.trace_export")
