// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis/made_trace.hpp"
#include "trace/export/hand_made_trace.hpp"

#include <troupe/trace/analysis/summary.hpp>
#include <troupe/trace/export/html_report.hpp>
#include <troupe/trace/export/report_numbers.hpp>
#include <troupe/trace/export/report_pictures.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::trace;
using namespace troupe::test;

TEST_SUITE("trace.export.report") {

namespace {

std::string page_of(std::span<const process_trace> parts) {
  const temporary_folder folder;
  write_html_report(parts, folder / "r.html");
  return read_bytes(folder / "r.html");
}

std::string page_of(const process_trace& t) {
  return page_of({&t, 1});
}

std::string sha256_base64(std::string_view text) {
  std::array<unsigned char, 32> hash{};
  unsigned bytes = 0;
  EVP_Digest(text.data(), text.size(), hash.data(), &bytes, EVP_sha256(),
             nullptr);
  std::array<unsigned char, 64> encoded{};
  EVP_EncodeBlock(encoded.data(), hash.data(), static_cast<int>(bytes));
  return reinterpret_cast<const char*>(encoded.data());
}

/// Steps of 100, 40, 60 and 50 us.
process_trace four_steps() {
  auto t = two_ops();
  event_list e{t};
  std::uint64_t time = 0;
  std::uint32_t step = 0;
  for (const std::uint64_t us : {100, 40, 60, 50}) {
    e.on(other_thread, step).add(time, event_kind::step_begin);
    e.on(0, step).run(time + 10'000, time + 20'000, conv);
    e.add(time += us * 1000, event_kind::step_end);
    ++step;
  }
  return t;
}

} // namespace

TEST_CASE("the page's policy allows its style and nothing else") {
  CHECK(report_style_sha256 == sha256_base64(report_style));
  const auto page = page_of(one_step());
  CHECK(contains(page, "<style>" + std::string{report_style} + "</style>"));
  CHECK(contains(page, "content=\"default-src 'none'; style-src 'sha256-"
                         + std::string{report_style_sha256}
                         + "'; base-uri 'none'; form-action 'none'\""));
  for (const char* never : {"<script", "style=", "src=", "href=", "http:",
                            "https:", "url(", "@import", "onclick"})
    CHECK_FALSE(contains(page, never));
  for (const char* always : {"prefers-color-scheme:dark", "width=device-width"})
    CHECK(contains(page, always));
}

TEST_CASE("names from the trace stay text") {
  auto t = one_step();
  t.graph.handles[conv].type = "<script>&'";
  t.phases[0].name = "<b>";
  const auto page = page_of(t);
  CHECK(contains(page, "Trace of train &quot;net&quot; &lt;a&amp;b&gt;"));
  CHECK(contains(page, "&lt;script&gt;&amp;&#39;"));
  CHECK_FALSE(contains(page, "<script"));
  CHECK_FALSE(contains(page, "<b>"));
}

TEST_CASE("a page has the numbers of a summary") {
  const auto t = four_steps();
  const report_numbers numbers{{&t, 1}};
  const op_graph graph{t.graph};
  const timeline all{{&t, 1}};
  const auto summary = summarize({&t, 1}, all, graph);
  REQUIRE(numbers.median_step);
  CHECK(numbers.median_step->step == summary.path->step);
  REQUIRE(numbers.in_median_step.size() == 1);
  CHECK(numbers.in_median_step[0].step == summary.path->step);
  const auto page = page_of(t);
  // Two steps count: 60 and 50 us.
  CHECK(summary.steps.median_ns == 55'000);
  CHECK(contains(page, "4 steps, of which 2 count: median 55.0 µs. The first "
                       "took 100 µs, the longest 100 µs (step 0)"));
  REQUIRE(summary.types.size() == 1);
  CHECK(summary.types[0].self_ns == 10'000);
  CHECK(contains(page, "conv2d</td><td class=\"n\">10.0 µs</td>"
                       "<td class=\"n\">100.0 %</td>"
                       "<td class=\"n\">1</td>"));
}

TEST_CASE("of steps in flight together, a page shows what each adds") {
  auto t = two_ops();
  event_list e{t};
  e.on(other_thread, 0).add(0, event_kind::step_begin);
  e.on(other_thread, 1).add(10'000, event_kind::step_begin);
  e.on(other_thread, 0).add(50'000, event_kind::step_end);
  e.on(other_thread, 1).add(55'000, event_kind::step_end);
  CHECK(contains(page_of(t), "2 steps, of which 2 count: median 27.5 µs"));
}

TEST_CASE("waits of workers are shown, the longest first") {
  const auto t = four_steps();
  const report_numbers numbers{{&t, 1}};
  REQUIRE(numbers.waits.size() == 3);
  CHECK(numbers.waits[0].ns() == 90'000);
  CHECK(numbers.waits[2].ns() == 30'000);
}

TEST_CASE("a wait names what the op waited for") {
  const auto t = one_step();
  const report_numbers numbers{{&t, 1}};
  REQUIRE(numbers.waits.size() == 1); // from the help to the update
  CHECK(numbers.waits[0].ns() == 700);
  CHECK(numbers.waits[0].op == update);
  CHECK(numbers.waits[0].waited_for == image);
  REQUIRE(numbers.memory.size() == 1);
  CHECK(std::ranges::max(numbers.memory[0], {}, &memory_point::bytes).bytes
        == numbers.summary.memory[0].bytes);
  CHECK(contains(page_of(t), "Peak 4.06 KiB, in step 0."));
}

TEST_CASE("actors of the application are shown, and how they ended") {
  auto t = two_actors();
  const auto page = page_of(t);
  CHECK(contains(page, "<h2>Actors of the application</h2>"));
  CHECK(contains(page, "<tr><td>feeder#12</td><td class=\"n\">400 ns</td>"));
  t.actors[0].has_failed = true;
  t.actors[0].reason = "<no more>";
  CHECK(contains(page_of(t), "<td>failed: &lt;no more&gt;</td>"));
  CHECK_FALSE(contains(page_of(one_step()), "Actors of the application"));
}

TEST_CASE("what is wrong with a trace is said") {
  auto t = one_step();
  CHECK_FALSE(contains(page_of(t), "<strong>"));
  t.lost = 5;
  t.is_complete = false;
  t.unread_bytes = 9;
  event_list{t}.add(4000, event_kind::failure, conv);
  const auto page = page_of(t);
  CHECK(contains(page, "5 events were overwritten"));
  CHECK(contains(page, "cut or damaged: its last 9 bytes"));
  CHECK_FALSE(contains(page, "without closing"));
  CHECK(contains(page, "Step 0 failed in conv2d"));
  t.unread_bytes = 0;
  CHECK(contains(page_of(t), "ended without closing its trace"));
}

TEST_CASE("slow runs are shown with their cause") {
  auto t = two_ops();
  event_list e{t};
  std::uint64_t time = 0;
  for (std::uint32_t step = 0; step < 6; ++step) {
    const std::uint64_t ns = step == 4 ? 9'000'000 : 1'000'000;
    e.on(other_thread, step).add(time, event_kind::step_begin);
    e.on(0, step).run(time, time + ns, conv);
    e.add(time += ns + 1000, event_kind::step_end);
    t.events.push_back({time, step == 4 ? 8'000'000u : 0u, 0, no_handle, step,
                        recorder::no_worker, event_kind::core_wait});
  }
  CHECK(contains(page_of(t),
                 "<td class=\"n\">9.00 ms</td><td class=\"n\">1.00 ms</td>"));
  CHECK(contains(page_of(t), "<td>preempted</td><td class=\"n\">8.00 ms of "));
  CHECK_FALSE(contains(page_of(four_steps()), "Slow runs"));
}

TEST_CASE("a rank that is slower than the others is shown") {
  const auto page = page_of(unequal_ranks(5, 8));
  CHECK(contains(page, "<h2>Ranks that are slower than the others"));
  CHECK(contains(page, "<tr><td class=\"n\">1</td><td>work</td>"
                       "<td class=\"n\">8.00 ms</td>"
                       "<td class=\"n\">5.00 ms</td>"
                       "<td class=\"n\">1.60</td></tr>"));
  CHECK_FALSE(contains(page_of(unequal_ranks(5, 5)), "slower than the others"));
}

TEST_CASE("a page of several ranks says which one") {
  std::vector<process_trace> parts{four_steps(), four_steps()};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].run.process = i;
    parts[i].run.processes = 3;
    parts[i].phases = {{"check", 0, 10}};
  }
  parts[1].lost = 7;
  const auto page = page_of(parts);
  for (const char* part : {"1 of 3 are not in the page", "rank 0: check",
                           "rank 1: check", "rank 1: 7 events were overwritten",
                           "0: worker 0", "1: worker 0", "rank 1: worker 0"}) {
    CAPTURE(part);
    CHECK(contains(page, part));
  }
  CHECK_FALSE(contains(page_of(four_steps()), "rank 0:"));
}

TEST_CASE("a trace without steps makes a page") {
  CHECK(contains(page_of(two_ops()), "No step was recorded"));
}

TEST_CASE("a page that cannot be written is named") {
  const auto thrown = caught([t = one_step()] {
    write_html_report({&t, 1}, "/no/such/folder/r.html");
  });
  CHECK(thrown.code() == errc::io_failure);
  CHECK(says(thrown, "/no/such/folder/r.html"));
}

TEST_CASE("times and sizes have a unit that fits") {
  CHECK(shown_time(999) == "999 ns");
  CHECK(shown_time(1500) == "1.50 µs");
  CHECK(shown_time(15'000'000) == "15.0 ms");
  CHECK(shown_time(150'000'000'000) == "150 s");
  CHECK(shown_bytes(1023) == "1023 B");
  CHECK(shown_bytes(3 << 20) == "3.00 MiB");
}
TEST_CASE("a report has the call stacks of a dump, and their names as text") {
  auto t = four_steps();
  CHECK_FALSE(contains(page_of(t), "Call stacks"));
  worker_stack stack;
  stack.worker = 3;
  stack.op = conv;
  stack.taken_ns = 5'000'000;
  stack.frames = {{"run<int>()", 16, "troupe", 32}};
  t.stacks.push_back(stack);
  stack.frames.clear();
  stack.missing = "it has not answered";
  t.stacks.push_back(stack);
  const auto page = page_of(t);
  CHECK(contains(page, "Call stacks of busy workers"));
  CHECK(contains(page, "run&lt;int&gt;()+0x10 (troupe+0x20)<br>"));
  CHECK(contains(page, "it has not answered"));
  CHECK(contains(page, "5.00 ms"));
}

} // TEST_SUITE("trace.export.report")
