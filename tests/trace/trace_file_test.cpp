// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/trace_format.hpp>
#include <troupe/trace/trace_reader.hpp>
#include <troupe/trace/trace_tables.hpp>
#include <troupe/trace/trace_writer.hpp>

#include <troupe/base/error.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.file") {

namespace {

graph_info small_graph() {
  graph_info g;
  g.devices = {"cpu:0", "cpu:1"};
  g.process_of_device = {0, 1};
  g.handles = {
    {"mul#0@cpu:0", "mul", true, false, 0, "compute", "[-1, 4]; [4, 3]"},
    {"all_reduce#1@cpu:1", "all_reduce", true, true, 1, "collective", ""},
    {"y:v1@cpu:0", "y", false, false, 0, "", "[-1, 3]"}};
  g.handles[0].scope = "/encoder/";
  g.edges = {{0, 2, 0}, {2, 1, 0}, {1, 0, 1}};
  return g;
}

run_info small_run() {
  return {
    "0.1.0",          "train mlp", "host-a",          4711, 1, 2, 2, "reduce",
    trace_level::ops, 123456789,   "0123456789abcdef"};
}

trace_event event_at(std::uint64_t ticks, std::uint16_t worker,
                     event_kind kind = event_kind::message) {
  trace_event e;
  e.time = ticks;
  e.from = 0;
  e.to = 2;
  e.worker = worker;
  e.kind = kind;
  return e;
}

/// Two ticks per nanosecond; the trace begins at 1000 ns, 5000 ticks.
constexpr std::uint64_t begin_ns = 1000;
constexpr clock_reading begin{5000, begin_ns};
constexpr clock_reading later{5000 + 2'000'000, begin_ns + 1'000'000};

/// A file with two blocks of events, of which the second one is earlier.
std::string written(const std::filesystem::path& path, bool closed = true) {
  trace_writer file{path};
  file.write(small_run());
  file.write(small_graph());
  const std::vector<phase> phases{{"read program", -500, -100}};
  file.write(phases);
  const std::vector<trace_event> first{event_at(6000, 0), event_at(9000, 1)};
  const std::vector<trace_event> second{event_at(7000, 1), event_at(11000, 0)};
  file.write(first, 0, begin, later, begin_ns);
  file.write(second, 3, begin, later, begin_ns);
  if (closed)
    file.close();
  return read_bytes(path);
}

std::vector<std::uint64_t> times(const process_trace& t) {
  std::vector<std::uint64_t> found;
  for (auto& e : t.events)
    found.push_back(e.time);
  return found;
}

} // namespace

TEST_CASE("a trace comes back with its times in nanoseconds, in order") {
  const temporary_folder folder;
  written(folder / "a.trt");
  const auto t = read_trace(folder / "a.trt");
  CHECK(t.is_complete);
  CHECK(t.unread_bytes == 0);
  CHECK(t.lost == 3);
  CHECK(times(t) == std::vector<std::uint64_t>{500, 1000, 2000, 3000});
  CHECK(t.events[1].worker == 1);
  CHECK(t.run.command == "train mlp");
  CHECK(t.run.process == 1);
  CHECK(t.run.level == trace_level::ops);
  CHECK(t.run.begin_unix_ns == 123456789);
  CHECK(t.run.job == "0123456789abcdef");
  REQUIRE(t.phases.size() == 1);
  CHECK(t.phases[0].begin_ns == -500);
  const auto g = small_graph();
  CHECK(t.graph.devices == g.devices);
  CHECK(t.graph.process_of_device == g.process_of_device);
  REQUIRE(t.graph.handles.size() == 3);
  CHECK(t.graph.handles[0].shape == "[-1, 4]; [4, 3]");
  CHECK(t.graph.handles[0].scope == "/encoder/");
  CHECK(t.graph.handles[1].scope.empty());
  CHECK(t.graph.handles[1].is_collective);
  CHECK(t.graph.handles[1].stream == "collective");
  CHECK_FALSE(t.graph.handles[2].is_op);
  REQUIRE(t.graph.edges.size() == 3);
  CHECK(t.graph.edges[2].distance == 1);
  CHECK(t.name_of(2) == "y:v1@cpu:0");
  CHECK(t.name_of(no_handle) == "start");
}

TEST_CASE("a file that is cut anywhere is read up to its last whole block") {
  const temporary_folder folder;
  const auto whole = written(folder / "a.trt");
  std::size_t readable = 0, before = 0;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    write_bytes(folder / "cut.trt", whole.substr(0, cut));
    try {
      const auto t = read_trace(folder / "cut.trt");
      ++readable;
      CHECK(t.events.empty() >= t.graph.handles.empty());
      CHECK_FALSE(t.is_complete);
      CHECK(t.events.size() >= before);
      before = t.events.size();
    } catch (const error& e) {
      CHECK(e.code() == errc::bad_file);
      CHECK(readable == 0);
    }
  }
  CHECK(before == 4);
  CHECK(readable == whole.size() - sizeof(file_head)); // all that are as long
}

TEST_CASE("events are of no use without their graph") {
  const temporary_folder folder;
  {
    trace_writer file{folder / "a.trt"};
    const std::vector<trace_event> events{event_at(6000, 0)};
    file.write(events, 0, begin, later, begin_ns);
  }
  CHECK(says(caught([&] { read_trace(folder / "a.trt"); }), "no graph"));
}

TEST_CASE("a process that does not close its file leaves all of it") {
  const temporary_folder folder;
  written(folder / "a.trt", false);
  const auto t = read_trace(folder / "a.trt");
  CHECK_FALSE(t.is_complete);
  CHECK(t.unread_bytes == 0);
  CHECK(t.events.size() == 4);
}

TEST_CASE("a damaged byte ends the trace before its block") {
  const temporary_folder folder;
  const auto whole = written(folder / "a.trt");
  std::size_t damaged = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
    write_bytes(folder / "b.trt", bytes);
    try {
      const auto t = read_trace(folder / "b.trt");
      // The kind of a block has no checksum: one of another kind is skipped.
      damaged += t.unread_bytes > 0;
      CHECK(t.events.size() <= 4);
    } catch (const error& e) {
      CHECK(e.code() == errc::bad_file);
    }
  }
  CHECK(damaged > 100);
}

TEST_CASE("blocks of later versions are skipped") {
  const temporary_folder folder;
  auto bytes = written(folder / "a.trt", false);
  bytes += make_block(static_cast<block_kind>(99), "what will be");
  bytes += make_block(block_kind::end, "");
  write_bytes(folder / "a.trt", bytes);
  const auto t = read_trace(folder / "a.trt");
  CHECK(t.is_complete);
  CHECK(t.events.size() == 4);
}

TEST_CASE("actors come back as they were last known, with their events") {
  const temporary_folder folder;
  {
    trace_writer file{folder / "a.trt"};
    file.write(small_graph());
    actor_table::changes found;
    recorded_actor a{"feeder", 12, "there", true};
    found.actors = {{0, a}, {1, {"main", 13}}};
    found.types = {{0, "(int)"}};
    file.write(found, begin_ns);
    auto mail = event_at(8000, 0, event_kind::mail);
    const std::vector<trace_event> events{event_at(6000, 0), mail};
    file.write(events, 2, begin, later, begin_ns);
    a.end_ns = begin_ns + 50;
    a.has_failed = true;
    a.reason = "lost";
    found.actors = {{0, a}};
    found.types.clear();
    file.write(found, begin_ns);
    file.write(actor_table::changes{}, begin_ns); // takes no block
    file.close();
  }
  const auto t = read_trace(folder / "a.trt");
  CHECK(t.is_complete);
  CHECK(t.lost == 2);
  CHECK(times(t) == std::vector<std::uint64_t>{500, 1500});
  CHECK(t.events[1].kind == event_kind::mail);
  REQUIRE(t.actors.size() == 2);
  CHECK(t.name_of_actor(0) == "feeder#12@there");
  CHECK(t.actors[0].is_recorded);
  CHECK(t.actors[0].end_ns == 50);
  CHECK(t.actors[0].has_failed);
  CHECK(t.actors[0].reason == "lost");
  CHECK_FALSE(t.actors[1].is_recorded);
  CHECK_FALSE(t.actors[1].end_ns);
  CHECK(t.name_of_actor(2) == "nobody");
  CHECK(t.name_of_type(0) == "(int)");
  CHECK(t.name_of_type(1) == "unknown");
}

TEST_CASE("a file has blocks of actors only if there are actors") {
  const temporary_folder folder;
  const auto kinds_of = [](const std::string& bytes) {
    std::vector<std::uint32_t> kinds;
    for (auto at = sizeof(file_head); at < bytes.size();) {
      block_head head;
      std::memcpy(&head, bytes.data() + at, sizeof head);
      kinds.push_back(static_cast<std::uint32_t>(head.kind));
      at += sizeof head + head.bytes;
    }
    return kinds;
  };
  CHECK(kinds_of(written(folder / "a.trt"))
        == std::vector<std::uint32_t>{1, 2, 3, 4, 4, 5});
  trace_writer file{folder / "b.trt"};
  const std::vector<trace_event> events{event_at(8000, 0, event_kind::mail)};
  file.write(events, 0, begin, later, begin_ns);
  file.close();
  CHECK(kinds_of(read_bytes(folder / "b.trt"))
        == std::vector<std::uint32_t>{4, 8, 5});
}

TEST_CASE("a list of actors whose numbers leave gaps is not believed") {
  const auto code = [](const std::string& text) {
    std::vector<recorded_actor> actors(1);
    std::vector<std::string> types;
    return caught([&] { parse_actors(text, actors, types); }).code();
  };
  for (const auto* text :
       {R"({"actors": [{"number": 2, "name": "", "id": 1}], "types": []})",
        R"({"actors": [{"number": -1, "name": "", "id": 1}], "types": []})",
        R"({"actors": [], "types": [{"number": 1, "name": ""}]})",
        R"({"actors": []})"}) {
    CAPTURE(text);
    CHECK(code(text) == errc::bad_file);
  }
}

TEST_CASE("events of many blocks take little more memory than they need") {
  const temporary_folder folder;
  trace_writer file{folder / "a.trt"};
  file.write(small_graph());
  std::uint64_t ticks = 5000;
  for (int block = 0; block < 20; ++block) {
    std::vector<trace_event> events;
    for (int i = 0; i < 1000; ++i)
      events.push_back(event_at(ticks += 2, 0));
    file.write(events, 0, begin, later, begin_ns);
  }
  file.close();
  const auto t = read_trace(folder / "a.trt");
  CHECK(t.events.size() == 20'000);
  CHECK(t.events.capacity() < 22'000);
}

TEST_CASE("call stacks come back with all that is known of a frame") {
  const temporary_folder folder;
  trace_writer file{folder / "a.trt"};
  file.write(small_graph());
  std::vector<worker_stack> stacks(2);
  stacks[0] = {1,
               4711,
               0,
               7,
               true,
               250,
               900,
               {{"run(int)", 44, "troupe", 5000},
                {"", 0, "libm.so.6", 16},
                {"", 0, "", 0x7fffffffffff}},
               ""};
  stacks[1].op = 1;
  stacks[1].missing = "it sleeps";
  file.write(stacks);
  file.close();
  const auto t = read_trace(folder / "a.trt");
  CHECK(t.is_complete);
  REQUIRE(t.stacks.size() == 2);
  const auto& s = t.stacks[0];
  CHECK(s.worker == 1);
  CHECK(s.thread == 4711);
  CHECK(t.name_of(s.op) == "mul#0@cpu:0");
  CHECK(s.step == 7);
  CHECK(s.is_help);
  CHECK(s.since_ns == 250);
  CHECK(s.taken_ns == 900);
  CHECK(s.missing.empty());
  REQUIRE(s.frames.size() == 3);
  CHECK(to_string(s.frames[0]) == "run(int)+0x2c (troupe+0x1388)");
  CHECK(to_string(s.frames[1]) == "libm.so.6+0x10");
  CHECK(to_string(s.frames[2]) == "0x7fffffffffff, generated code");
  CHECK(t.stacks[1].missing == "it sleeps");
  CHECK(t.stacks[1].frames.empty());
  CHECK_FALSE(t.stacks[1].is_help);
}

TEST_CASE("call stacks that are malformed are not believed, and what comes "
          "before is read") {
  const std::string good =
    R"({"worker": 0, "thread": 1, "op": 1, "step": 0, "since_ns": 0,)"
    R"( "taken_ns": 1, "frames": [{"module_offset": 5}]})";
  CHECK(parse_stacks("[" + good + "]", 2).size() == 1);
  CHECK(caught([&] { parse_stacks("[" + good + "]", 1); }).code()
        == errc::bad_file); // no such op
  for (const auto* text :
       {"", "7", "[7]", "[{}]",
        R"([{"worker": 65535, "thread": 1, "op": 1, "step": 0, "since_ns": 0,
             "taken_ns": 1, "frames": []}])",
        R"([{"worker": 0, "thread": 1, "op": 1, "step": 0, "since_ns": 0,
             "taken_ns": 9e18, "frames": []}])",
        R"([{"worker": 0, "thread": 1, "op": 1, "step": 0, "since_ns": 0,
             "taken_ns": 1, "frames": [{"symbol": "no offset"}]}])"}) {
    CAPTURE(text);
    CHECK(caught([&] { parse_stacks(text, 2); }).code() == errc::bad_file);
    const temporary_folder folder;
    const auto bytes =
      written(folder / "a.trt", false) + make_block(block_kind::stacks, text);
    write_bytes(folder / "a.trt", bytes);
    const auto t = read_trace(folder / "a.trt");
    CHECK(t.unread_bytes > 0);
    CHECK(t.events.size() == 4);
    CHECK(t.stacks.empty());
  }
}

TEST_CASE("what is no trace, or too new, is refused in one line") {
  const temporary_folder folder;
  const auto why = [&](const std::string& bytes) {
    write_bytes(folder / "x", bytes);
    return caught([&] { read_trace(folder / "x"); });
  };
  for (const auto* text : {"", "hello", "{\"traceEvents\": []}           "})
    CHECK(says(why(text), "not a trace of Troupe"));
  file_head head;
  head.version = format_version + 1;
  std::string newer(sizeof head, '\0');
  std::memcpy(newer.data(), &head, sizeof head);
  CHECK(says(why(newer), "a newer version of Troupe (format 4, this one reads "
                         "up to 3)"));
  CHECK(caught([&] { read_trace(folder / "none"); }).code() == errc::not_found);
}

TEST_CASE("a file of format 1, which has no parcels, is still read") {
  const temporary_folder folder;
  auto bytes = written(folder / "a.trt");
  const std::uint32_t version = 1;
  std::memcpy(bytes.data() + offsetof(file_head, version), &version,
              sizeof version);
  write_bytes(folder / "old.trt", bytes);
  const auto t = read_trace(folder / "old.trt");
  CHECK(t.is_complete);
  CHECK(times(t) == std::vector<std::uint64_t>{500, 1000, 2000, 3000});
}

TEST_CASE("a graph whose numbers are out of range is not believed") {
  const temporary_folder folder;
  for (int which = 0; which < 3; ++which) {
    auto g = small_graph();
    if (which == 0)
      g.handles[0].device = 2;
    else if (which == 1)
      g.edges[0].to = 3;
    else
      g.process_of_device = {0};
    trace_writer file{folder / "a.trt"};
    file.write(g);
    file.close();
    CHECK(caught([&] { read_trace(folder / "a.trt"); }).code()
          == errc::bad_file);
  }
}

TEST_CASE("a run whose numbers are out of range is not believed") {
  CHECK(parse_run(R"({"level": 3, "workers": 65535})").workers == 65535);
  for (const auto* text : {R"({"level": 4})", R"({"level": -1})",
                           R"({"level": 259})", R"({"workers": 65536})"}) {
    CAPTURE(text);
    CHECK(caught([&] { parse_run(text); }).code() == errc::bad_file);
  }
}

TEST_CASE("a place that cannot be written is named before it is written") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  write_bytes(file, "old");
  std::filesystem::create_symlink(folder / "none/a.trt", folder / "link");
  const auto refused = [&](const std::string& place, const std::string& why) {
    for (const bool is_tried : {false, true})
      CHECK(says(caught([&] {
                   is_tried ? trace_writer{place}.close()
                            : require_trace_place(place);
                 }),
                 "cannot write " + place + ": " + why));
  };
  refused("/nowhere/a.trt", "there is no folder /nowhere");
  refused(folder / "link", "there is no folder " + (folder / "none").string());
  refused(folder.path(), "Is a directory");
  refused(folder / "new/", "Is a directory");
  refused(file + "/a.trt", "Not a directory");
  refused("/dev/full", "No space left on device");
  if (::geteuid() != 0) { // root may write everything
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    refused(file, "Permission denied");
    refused("/proc/a.trt", "Permission denied");
  }
  CHECK(read_bytes(file) == "old");
  CHECK(folder.entries() == 2);
}

TEST_CASE("looking at a place leaves what is there, or is not") {
  const temporary_folder folder;
  const std::string file = folder / "a.trt";
  require_trace_place(file);
  CHECK(folder.entries() == 0);
  write_bytes(file, "old");
  require_trace_place(file);
  CHECK(read_bytes(file) == "old");
  require_trace_place("/dev/null");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  require_trace_place(folder / "pipe"); // does not wait for a reader
}

} // TEST_SUITE("trace.file")
