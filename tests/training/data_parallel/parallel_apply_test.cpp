// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/cores.hpp>
#include <troupe/training/data_parallel/parallel_apply.hpp>

#include <support/caught.hpp>
#include <support/skip_case.hpp>
#include <training/actors/asking.hpp>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::test;
using namespace troupe::parallel;

TEST_SUITE("training.data_parallel.parallel_apply") {

namespace {

using task = std::function<void()>;

} // namespace

TEST_CASE_FIXTURE(host_application, "results are in the order of replicas") {
  const auto on = parse_devices("cpu:3");
  const std::vector<std::function<std::string(int)>> replicas{
    [](int x) { return std::to_string(x); },
    [](int x) { return std::to_string(10 * x); },
    [](int x) { return "-" + std::to_string(x); }};
  CHECK(parallel_apply(*system, replicas, std::vector{1, 2, 3}, on)
        == std::vector<std::string>{"1", "20", "-3"});
  CHECK(caught([&] {
          parallel_apply(*system, replicas, std::vector{1, 2}, on);
        }).code()
        == errc::invalid_argument);
}

TEST_CASE_FIXTURE(host_application, "replicas run at the same time, each on a "
                                    "thread of the actor system") {
  if (usable_cores() < 2)
    return skip_case("needs two cores");
  std::latch both{2};
  const auto here = std::this_thread::get_id();
  std::atomic<int> elsewhere{0};
  const task meets = [&] {
    both.arrive_and_wait();
    elsewhere += std::this_thread::get_id() != here;
  };
  run_replicas(*system, parse_devices("cpu:2"), std::vector{meets, meets});
  CHECK(elsewhere == 2);
}

TEST_CASE_FIXTURE(
  host_application,
  "all replicas are waited for, and the first error by index names "
  "replica and device, and keeps its cause") {
  if (usable_cores() < 2)
    return skip_case("needs two cores");
  std::atomic<int> ended{0};
  std::latch second_failed{1};
  const std::vector<task> tasks{
    [&] { ++ended; },
    [&] {
      second_failed.wait();
      throw error(errc::out_of_range, "wonderful",
                  {.op_type = "lookup_table", .variable = "ids"});
    },
    [&] {
      const struct counted {
        std::latch& down;
        ~counted() { down.count_down(); }
      } at_end{second_failed};
      throw std::length_error("too long");
    },
    [&] { ++ended; }};
  const task too_long = [] { throw std::length_error("too long"); };
  const auto on = parse_devices("cpu:4");
  try {
    run_replicas(*system, on, tasks);
    FAIL("nothing was thrown");
  } catch (const error& e) {
    CHECK(ended == 2);
    CHECK(e.code() == errc::out_of_range);
    CHECK(e.message()
          == "in replica 1 on cpu:1: wonderful; also failed: replica 2 on "
             "cpu:2");
    CHECK(e.where().op_type == "lookup_table");
    CHECK(e.where().variable == "ids");
    CHECK(e.where().device == "cpu:1");
    const auto cause = caught([&] { std::rethrow_if_nested(e); });
    CHECK(cause.message() == "wonderful");
  }
  CHECK_THROWS_WITH_AS(
    [&] {
      try {
        run_replicas(*system, on, std::vector(4, too_long));
      } catch (const error& e) {
        CHECK(e.code() == errc::kernel_failure);
        CHECK(says(e, "in replica 0 on cpu:0: too long"));
        std::rethrow_if_nested(e);
      }
    }(),
    "too long", std::length_error);
}

TEST_CASE("replicas run in an application's system without Troupe's policy, "
          "on one worker too") {
  for (bool is_configured : {true, false}) {
    host_application app{1, is_configured};
    std::atomic<int> ended{0};
    run_replicas(*app.system, parse_devices("cpu:4"),
                 std::vector<task>(4, [&] { ++ended; }));
    CHECK(ended == 4);
  }
}

} // TEST_SUITE("training.data_parallel.parallel_apply")
