// SPDX-License-Identifier: Apache-2.0
#include <support/caught.hpp>
#include <support/files.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/results/fetch_file.hpp>
#include <troupe/apps/results/loss_curve.hpp>
#include <troupe/apps/results/metrics_file.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <limits>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;

TEST_SUITE("apps.output") {

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++found;
  return found;
}

} // namespace

TEST_CASE("a metrics line has five keys in their order") {
  const std::array losses{0.5, no_number};
  CHECK(to_json_line({3, 0.5, losses, 1.23456, 8300.04})
        == "{\"step\":3,\"loss\":0.5,\"losses\":[0.5,null],\"ms\":1.235,"
           "\"samples_per_s\":8300.0}\n");
}

TEST_CASE("a metrics line is on disk when it is written") {
  const temporary_folder folder;
  metrics_file file((folder / "m.jsonl").string());
  file.write({});
  CHECK(count(read_bytes(folder / "m.jsonl"), "\n") == 1);
  file.write({.step = 1});
  CHECK(count(read_bytes(folder / "m.jsonl"), "\n") == 2);
}

TEST_CASE("metrics that cannot be written are an error") {
  CHECK(caught([] { metrics_file("/no/such/m.jsonl"); }).code()
        == errc::io_failure);
  metrics_file full("/dev/full");
  CHECK(says(caught([&] { full.write({}); }), "/dev/full"));
}

TEST_CASE("metrics follow what the process writes to the same file") {
  const temporary_folder folder;
  const std::string path = folder / "m", link = folder / "link";
  const std::string line = to_json_line({});
  for (const int flags : {O_WRONLY, O_RDWR, O_WRONLY | O_APPEND}) {
    write_bytes(path, "before\n");
    const int open = ::open(path.c_str(), flags | O_CLOEXEC);
    ::lseek(open, 0, SEEK_END);
    const auto number = std::to_string(open);
    std::filesystem::remove(link);
    std::filesystem::create_symlink("/dev/fd/" + number, link);
    std::string expected = "before\n";
    for (const auto& name :
         {"/dev/fd/" + number, "/proc/self/fd/" + number, link, path}) {
      CAPTURE(name);
      metrics_file file(name);
      file.write({});
      CHECK(::write(open, "between\n", 8) == 8);
      file.write({});
      expected += line + "between\n" + line;
      CHECK(read_bytes(path) == expected);
    }
    ::close(open);
  }
  metrics_file(path).write({}); // no other output goes there any more
  CHECK(read_bytes(path) == line);
}

TEST_CASE("a line of metrics that finds no room leaves no part of it") {
  const temporary_folder folder;
  const auto line = to_json_line({}).size();
  for (std::size_t room : {2 * line, 2 * line + 1, 3 * line - 1}) {
    metrics_file file((folder / "m.jsonl").string());
    const file_size_limit limit(room);
    file.write({});
    file.write({});
    CHECK(caught([&] { file.write({}); }).code() == errc::io_failure);
    CHECK(read_bytes(folder / "m.jsonl").size() == 2 * line);
  }
}

TEST_CASE("a progress bar is as full as the work is done") {
  CHECK(progress_bar({0, 4, 1, 10}, 4).starts_with("[>   ] 0/4"));
  CHECK(progress_bar({2, 4, 1, 10}, 4).starts_with("[==> ] 2/4"));
  CHECK(progress_bar({4, 4, 1, 10}, 4).starts_with("[====] 4/4"));
  CHECK(progress_bar({1, 0, 1, 10}, 4).starts_with("[====] 1/0"));
}

TEST_CASE("a progress bar tells the time that is left") {
  const auto left = [](std::optional<double> seconds) {
    const auto bar = progress_bar({1, 4, 1, 10, seconds}, 4);
    return bar.substr(bar.find("samples/s") + 9);
  };
  CHECK(left(std::nullopt) == "");
  CHECK(left(0) == "  0:00 left");
  CHECK(left(6.2) == "  0:07 left");
  CHECK(left(754) == "  12:34 left");
  CHECK(left(2 * 3600 + 3 * 60 + 4) == "  2:03:04 left");
  CHECK(left(100 * 3600) == "  100:00:00 left");
}

TEST_CASE("the time that is left follows from the steps behind the first") {
  constexpr std::uint64_t second = 1'000'000'000;
  remaining_time time;
  CHECK_FALSE(time.after(50 * second, 1, 11).has_value());
  CHECK(time.after(52 * second, 2, 11).value() == doctest::Approx(18));
  CHECK(time.after(53 * second, 3, 11).value() == doctest::Approx(12));
  CHECK(time.after(60 * second, 11, 11).value() == 0);
  CHECK_FALSE(time.after(61 * second, 12, 11).has_value());
}

TEST_CASE("a loss curve has a line for steps, a dot per epoch, labels") {
  const loss_history history{{3, 2, no_number, 1}, {2.5, 1}, {2, 4}};
  const std::string svg = draw_loss_curve(history, "a <b> & c");
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "<circle") == 2);
  CHECK(contains(svg, "a &lt;b> &amp; c"));
  CHECK(contains(svg, ">step<"));
  CHECK(contains(svg, ">loss<"));
  CHECK_FALSE(contains(svg, "nan"));
}

TEST_CASE("a loss curve is XML whatever the program is called") {
  const std::string svg = draw_loss_curve({{2, 1}, {1}, {2}}, "a\x01\n\xff");
  CHECK(contains(svg, "a\\x01\\x0a\\xff"));
  CHECK_FALSE(contains(svg, "\x01"));
}

TEST_CASE("the loss of a single step is a dot of its own") {
  CHECK(count(draw_loss_curve({{2}, {2}, {1}}, "x"), "<circle") == 2);
}

TEST_CASE("a loss that diverged leaves the others visible") {
  const std::string svg =
    draw_loss_curve({{2, 1, HUGE_VAL}, {HUGE_VAL}, {3}}, "x");
  CHECK_FALSE(contains(svg, "inf"));
  CHECK_FALSE(contains(svg, "nan"));
  CHECK(contains(svg, ">2<"));
}

TEST_CASE("a long loss curve is thinned and keeps its extremes") {
  loss_history history;
  history.steps.assign(100'000, 1.0);
  history.steps[55'555] = 9.0;
  const std::string svg = draw_loss_curve(history, "long");
  CHECK(svg.size() < 40'000);
  CHECK(contains(svg, ">10<"));
}

TEST_CASE("curves without a finite loss, or without any, are drawn empty") {
  CHECK_FALSE(contains(
    draw_loss_curve({{no_number, no_number}, {no_number}, {2}}, "x"), "nan"));
  CHECK(contains(draw_loss_curve({}, "x"), "</svg>"));
  CHECK(contains(draw_loss_curve({{2, 2}, {2}, {2}}, "x"), "</svg>"));
}

TEST_CASE("fetched variables are stacked by step") {
  arena memory(make_host_memory_source());
  const temporary_folder folder;
  const auto value = [&](const shape& dims, float first) {
    tensor out = tensor::make(memory, dims, dtype::float32);
    for (float& x : out.values<float>())
      x = first++;
    return out;
  };
  const auto step = [&](std::int64_t rows) {
    step_result result;
    result.fetched["p"] = {value({2}, 7), value({2}, 7)};
    result.fetched["h"] = {value({rows, 1}, 0), value({rows, 1}, 10)};
    return result;
  };
  fetch_file file(folder / "f.npz", {"p", "h"}, {"p"});
  file.add(step(1));
  file.add(step(1));
  file.write(memory);
  auto arrays = read_npz(folder / "f.npz", memory);
  CHECK(arrays.at("p").dims() == shape{2, 2});
  CHECK(arrays.at("h").dims() == shape{2, 2, 1});
  CHECK(arrays.at("h").data<float>()[3] == 10.0f);

  file.add(step(2));
  file.write(memory);
  arrays = read_npz(folder / "f.npz", memory);
  CHECK(arrays.at("h/2").dims() == shape{4, 1});
  CHECK(arrays.at("p").dims() == shape{3, 2});
}
} // TEST_SUITE("apps.output")
