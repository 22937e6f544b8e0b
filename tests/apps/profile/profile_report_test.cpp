// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/profile/profile_report.hpp>

#include <troupe/graph/models.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

using namespace troupe;
using namespace troupe::apps;

TEST_SUITE("apps.profile_report") {

namespace {

constexpr double gigabyte = 1e9;

/// Ten steps of 4 ms, most of them in matrix products.
profile_times some_times() {
  return {.steps = 10,
          .wall_ns = 40'000'000,
          .ops = {{"mul", {60, 20'000'000, 20'000'000, 5'000}},
                  {"while", {10, 15'000'000, 5'000'000, 0}},
                  {"relu", {40, 2'000'000, 2'000'000, 0}}},
          .busy_ns = {30'000'000, 10'000'000}};
}

profile_report report_of(const profile_times& times) {
  return make_profile_report(times, graph::build_model("mlp").main, 64, 2,
                             {200 * gigabyte, 20 * gigabyte});
}

} // namespace

TEST_CASE("a profile tells what a step takes, most of it first") {
  const auto report = report_of(some_times());
  CHECK(report.step_ms == doctest::Approx(4));
  REQUIRE(report.rows.size() == 3);
  CHECK(report.rows[0].type == "mul");
  CHECK(report.rows[0].count == doctest::Approx(6));
  CHECK(report.rows[0].self_ms == doctest::Approx(2));
  CHECK(report.rows[0].layout_bytes == doctest::Approx(500));
  CHECK(report.rows[1].type == "while");
  CHECK(report.rows[1].total_ms == doctest::Approx(1.5));
  CHECK(report.rows[1].self_ms == doctest::Approx(0.5));
  CHECK(report.rows[2].type == "relu");
}

TEST_CASE("products are measured against the roof of one worker") {
  const auto report = report_of(some_times());
  // Layers 784-512-256-10: a multiplication and an addition per weight and
  // sample.
  const double flops = 2 * 64 * (784 * 512 + 512 * 256 + 256 * 10);
  const auto& mul = report.rows[0];
  CHECK(mul.work.flops == doctest::Approx(flops));
  CHECK(mul.gflop_per_s() == doctest::Approx(flops / 2e-3 * 1e-9));
  CHECK(report.roof.flops_per_s == doctest::Approx(100 * gigabyte));
  CHECK(mul.share_of_roof() >= flops / (100 * gigabyte) / 2e-3);
}

TEST_CASE("ops that one device alone runs count once") {
  auto times = some_times();
  const auto on_each = report_of(times);
  times.ops["mul"].count /= 2;
  const auto on_one = report_of(times);
  CHECK(on_one.rows[0].work.flops
        == doctest::Approx(on_each.rows[0].work.flops / 2));
  CHECK(on_one.rows[0].work.bytes
        == doctest::Approx(on_each.rows[0].work.bytes / 2));
  CHECK(on_one.rows[0].roof_ms == doctest::Approx(on_each.rows[0].roof_ms / 2));
  times.ops["mul"].count *= 10; // as if most of them were in a loop
  CHECK(report_of(times).rows[0].work.flops == on_each.rows[0].work.flops);
}

TEST_CASE("a gradient that one device makes for all is its op's work") {
  auto times = some_times();
  times.ops = {{"mul_grad", {60, 20'000'000, 20'000'000, 0}},
               {"gathered_mul_grad", {20, 10'000'000, 10'000'000, 0}}};
  times.gathered_by = {{"fc_0.w_0", "gathered_mul_grad"},
                       {"fc_1.w_0", "gathered_mul_grad"}};
  const auto report = report_of(times);
  const double first = 2 * 64 * 784 * 512; // without a gradient of the image
  const double second = 2 * 64 * 512 * 256, third = 2 * 64 * 256 * 10;
  REQUIRE(report.rows.size() == 2);
  CHECK(report.rows[0].work.flops == doctest::Approx(second + 2 * third));
  CHECK(report.rows[1].type == "gathered_mul_grad");
  CHECK(report.rows[1].work.flops == doctest::Approx(first + second));
}

TEST_CASE("an update that merges reads the gradient of every device") {
  using types = profile_times::type_by_parameter;
  const auto bytes_of = [](const char* type, std::uint64_t runs,
                           const types& merged_by) {
    auto times = some_times();
    times.ops = {{type, {times.steps * runs, 20'000'000, 20'000'000, 0}}};
    times.merged_by = merged_by;
    const auto report = report_of(times);
    REQUIRE(report.rows.size() == 1);
    return report.rows[0].work.bytes;
  };
  const types merged_by{{"fc_0.w_0", "merging_momentum"}};
  const double gradient = 784 * 512 * sizeof(float);
  const auto updates = bytes_of("momentum", 12, {});
  const auto others = bytes_of("momentum", 10, merged_by);
  CHECK(others < updates);
  CHECK(bytes_of("merging_momentum", 2, merged_by)
        == doctest::Approx(updates - others + 2 * gradient));
  CHECK(bytes_of("merging_momentum", 2, {}) == 0);
}

TEST_CASE("an update that gathers does the product's work and its own") {
  auto times = some_times();
  times.ops = {{"mul_grad", {100, 20'000'000, 20'000'000, 0}}};
  const auto before = report_of(times);
  times.ops = {{"mul_grad", {80, 20'000'000, 20'000'000, 0}},
               {"gathered_momentum", {10, 10'000'000, 10'000'000, 0}}};
  times.gathered_by = {{"fc_0.w_0", "gathered_momentum"}};
  times.merged_by = times.gathered_by;
  const auto report = report_of(times);
  const double product = 2 * 64 * 784 * 512, matrix = 784 * 512 * sizeof(float);
  CHECK(report.rows[0].work.flops
        == doctest::Approx(before.rows[0].work.flops - product));
  REQUIRE(report.rows[1].type == "gathered_momentum");
  CHECK(report.rows[1].work.flops == doctest::Approx(product));
  CHECK(report.rows[1].work.bytes > 5 * matrix);
}

TEST_CASE("a worker is idle while it runs no op") {
  const auto report = report_of(some_times());
  CHECK(report.idle[0] == doctest::Approx(0.25));
  CHECK(report.idle[1] == doctest::Approx(0.75));
}

TEST_CASE("a profile of no steps has no rows") {
  profile_times nothing;
  nothing.busy_ns = {0};
  const auto report = report_of(nothing);
  CHECK(report.rows.empty());
  CHECK(report.idle == std::vector<double>{1});
  CHECK(to_text(report).starts_with("0.0000 ms per step over 0 steps"));
}

TEST_CASE("the table has a line per type and a dash for what is not known") {
  const auto text = to_text(report_of(some_times()));
  CHECK(text.find("\nmul ") != std::string::npos);
  const auto line = text.substr(text.find("\nwhile") + 1);
  CHECK(line.substr(0, line.find('\n')).find(" -") != std::string::npos);
  CHECK(text.find("worker 1 idle 75.0%") != std::string::npos);
}

TEST_CASE("the JSON object has the figures of the table") {
  const auto report = report_of(some_times());
  const auto all = nlohmann::json::parse(to_json(report))["profile"];
  CHECK(all["ops"]["mul"]["self_ms"] == report.rows[0].self_ms);
  CHECK(all["idle"].size() == 2);
}

} // TEST_SUITE("apps.profile_report")
