// SPDX-License-Identifier: Apache-2.0
//
// The command on a system that allows only few threads (`ulimit -u`, the pids
// limit of a container).
#include "apps/command_runner.hpp"

#include <troupe/base/cores.hpp>

#include <support/files.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <unistd.h>

using namespace troupe::test;

TEST_SUITE("apps.thread_limit") {
namespace {

using words = std::vector<std::string>;

/// True if a run succeeded, or failed with one line that names the limits.
bool is_clean(const command_result& result) {
  return result.code == 0
         || fails_with(result, 1,
                       {"troupe: cannot start ", ": Resource temporarily "
                                                 "unavailable (limits: ulimit "
                                                 "-u, the pids limit"});
}

/// Null if commands can run with a thread limit here.
const char* reason_to_skip() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "a sanitizer ends the process if a thread of its own does not start";
#else
  return ::getuid() == 0
           ? nullptr
           : "needs root, which can become a user without processes";
#endif
}

} // namespace

TEST_CASE("a command that gets too few threads ends with one line") {
  if (const auto* reason = reason_to_skip())
    return skip_case(reason);
  const words all_engines{"bench",   "tasks",       "--engine", "all",
                          "--width", "4",           "--steps",  "4",
                          "--grain", "0",           "--repeat", "1",
                          "--check", "--sample-ms", "1"};
  const words commands[] = {
    {"train", "mlp", "--synthetic", "--steps", "2", "--devices", "cpu:2"},
    {"train", "mlp", "--synthetic", "--steps", "2"},
    {"train", "mlp", "--synthetic", "--steps", "1", "--devices", "sim:1"},
    {"bench", "train", "mlp", "--steps", "1", "--warm-up", "0", "--devices",
     "cpu:1"},
    {"bench", "schedule", "mlp", "--repeat", "1", "--sample-ms", "1"},
    {"bench", "steps", "mlp", "--repeat", "1", "--sample-ms", "1"},
    all_engines};
  for (const auto& command : commands) {
    CAPTURE(command);
    const auto few = run_troupe_with_threads(1, command);
    CHECK(few.code == 1);
    CHECK(lines_of(few.err).size() == 1);
    for (std::size_t threads = 1; threads <= 12; ++threads) {
      CAPTURE(threads);
      CHECK(is_clean(run_troupe_with_threads(threads, command)));
    }
  }
}

TEST_CASE("what needs no threads runs without") {
  if (const auto* reason = reason_to_skip())
    return skip_case(reason);
  for (const words& command :
       {words{"inspect", "mlp"}, {"graph", "mlp"}, {"--version"}})
    CHECK(run_troupe_with_threads(1, command).code == 0);
}

TEST_CASE("latency is not measured with too few threads") {
  if (const auto* reason = reason_to_skip())
    return skip_case(reason);
  if (troupe::usable_cores() < 2)
    return skip_case("needs two cores");
  for (std::size_t threads = 1; threads <= 6; ++threads) {
    const auto result = run_troupe_with_threads(
      threads, {"bench", "latency", "--gap-us", "1", "--op-us", "1", "--rounds",
                "1", "--steps", "1", "--idle-s", "0.001"});
    CAPTURE(threads);
    CAPTURE(result.err);
    CHECK(
      (result.code == 0
       || (result.code == 1 && contains(result.err, "troupe: cannot start "))));
  }
}

} // TEST_SUITE("apps.thread_limit")
