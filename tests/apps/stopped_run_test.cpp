// SPDX-License-Identifier: Apache-2.0
//
// Signals and limits that end a run of the command.
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include <sys/resource.h>
#include <sys/types.h>

using namespace troupe::test;

TEST_SUITE("apps.stopped_run") {

TEST_CASE("Ctrl-C ends the run after a step and saves nothing") {
  const temporary_folder folder;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto result =
      run_troupe({"train", "mlp", "--synthetic", "--steps", "100000000",
                  "--save", folder / "saved", "--loss-curve", folder / "l.svg"},
                 [&](pid_t process, const std::string& err) {
                   if (!contains(err, "epoch 2"))
                     return false;
                   ::kill(process, signal);
                   return true;
                 });
    CHECK(fails_with(result, 1, {"stopped after step", "of 100000000"}));
    CHECK(folder.entries() == 0);
  }
}

TEST_CASE("Ctrl-C ends an evaluation after a step with one line") {
  const temporary_folder folder;
  const std::string text = folder / "t.txt", saved = folder / "saved";
  write_bytes(text, std::string(1'000'000, 'a'));
  REQUIRE(run_troupe({"train", "gpt", "--data", text, "--steps", "1", "--batch",
                      "1", "--devices", "cpu:1", "--save", saved})
            .code
          == 0);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto result = run_troupe(
      {"eval", "gpt", "--params", saved, "--data", text, "--batch", "1"},
      [&](pid_t process, auto&) {
        if (!catches(process, signal))
          return false;
        ::kill(process, signal);
        return true;
      });
    CHECK(fails_with(result, 1, {"troupe: stopped after step ", " of "}));
  }
}

TEST_CASE("a limit of CPU time ends the run after a step") {
  CHECK(fails_with(
    run_troupe_for(3, {"train", "mlp", "--synthetic", "--steps", "100000000"}),
    1, {"stopped after step", "of 100000000"}));
}

TEST_CASE("a limit of CPU time that is set meanwhile ends the run") {
  const auto result = run_troupe(
    {"train", "mlp", "--synthetic", "--steps", "100000000"},
    [](pid_t process, const std::string& err) {
      const rlimit one_second{1, RLIM_INFINITY};
      return contains(err, "epoch 2")
             && ::prlimit(process, RLIMIT_CPU, &one_second, nullptr) == 0;
    });
  CHECK(fails_with(result, 1, {"stopped after step", "of 100000000"}));
}

TEST_CASE("a stop in the last evaluation says so, and where the model is") {
  const temporary_folder folder;
  const std::string saved = folder / "saved";
  const auto result = run_troupe(
    {"train", "digits", "--data", TROUPE_DATA "/digits", "--steps", "1",
     "--batch", "1", "--devices", "cpu:1", "--save", saved},
    [&](pid_t process, auto&) {
      return std::filesystem::exists(saved) && ::kill(process, SIGINT) == 0;
    });
  INFO(result.err);
  // The evaluation may have ended before the signal came.
  CHECK((result.code == 0
         || fails_with(result, 1,
                       {"stopped in the evaluation on held-out samples; the "
                        "trained program is saved in "
                        + saved})));
}

TEST_CASE("a signal after the last step changes nothing") {
  for (int time = 0; time < 20; ++time) {
    const temporary_folder folder;
    const auto result = run_troupe(
      {"train", "mlp", "--synthetic", "--steps", "1", "--devices", "cpu:1"},
      [&](pid_t process, const std::string& err) {
        if (!contains(err, "trained 1 step"))
          return false;
        ::kill(process, SIGTERM);
        return true;
      });
    INFO(result.err);
    CHECK(result.code == 0);
  }
}

} // TEST_SUITE("apps.stopped_run")
