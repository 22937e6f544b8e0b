// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/core_waits.hpp>

#include <troupe/base/event_reader.hpp>
#include <troupe/base/job_queue.hpp>
#include <troupe/base/threads.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>
#include <set>
#include <thread>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("actors.tracing.core_waits") {

namespace {

auto open_files() {
  return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"},
                       std::filesystem::directory_iterator{});
}

} // namespace

TEST_CASE("ends of steps record for how long each worker had no core") {
  if (!std::filesystem::exists("/proc/self/schedstat"))
    return skip_case("the system does not count waits for cores");
  const auto files = open_files();
  job_queue queue{2};
  recorder events{queue};
  actors::core_waits waits{queue, events};
  const worker here{queue, 0}; // nobody has served seat 1
  CHECK(queue.thread_of(0) == this_thread_number());
  CHECK(queue.thread_of(1) == 0);
  waits.step_ended(1); // the level is off
  const level_request steps{events, trace_level::steps};
  event_reader reader{events};
  std::set<handle_id> known; // of whom there are readings
  for (step_id step = 2; known.size() < 2; ++step) {
    waits.step_ended(step);
    std::this_thread::yield();
    for (const auto& e : reader.take()) {
      CHECK(e.kind == event_kind::core_wait);
      CHECK(e.worker == recorder::no_worker);
      CHECK(e.step == static_cast<std::uint32_t>(step));
      known.insert(e.from);
    }
  }
  CHECK(known == std::set<handle_id>{0, no_handle}); // and of the machine
  CHECK(open_files() == files); // an application can have many executors
}

} // TEST_SUITE("actors.tracing.core_waits")
