// SPDX-License-Identifier: Apache-2.0
//
// Signals and limits that end a run of the command.
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <sys/resource.h>
#include <sys/types.h>

using namespace troupe::test;

TEST_SUITE("apps.stopped_run") {

namespace {

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift : {24, 16, 8, 0})
    bytes += static_cast<char>(number >> shift & 255);
  return bytes;
}

/// Replaces the held-out images of 8 x 8 pixels in a folder of IDX files.
void hold_out_empty_images(const std::filesystem::path& data,
                           std::uint32_t count) {
  constexpr std::uint32_t labels = 0x801, images = 0x803, side = 8;
  write_bytes(data / "t10k-labels-idx1-ubyte", big_endian(labels)
                                                 + big_endian(count)
                                                 + std::string(count, '\0'));
  write_bytes(data / "t10k-images-idx3-ubyte",
              big_endian(images) + big_endian(count) + big_endian(side)
                + big_endian(side)
                + std::string(std::size_t{count} * side * side, '\0'));
}

} // namespace

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
  const auto data = folder.path() / "data";
  std::filesystem::copy(TROUPE_DATA "/digits", data);
  hold_out_empty_images(data, 400'000); // takes long enough for a signal
  const std::string saved = folder / "saved", metrics = folder / "metrics";
  const auto result =
    run_troupe({"train", "digits", "--data", data, "--steps", "1", "--devices",
                "cpu:1", "--save", saved, "--metrics", metrics},
               [&](pid_t process, auto&) {
                 return std::filesystem::exists(metrics)
                        && contains(read_bytes(metrics), "\n") // the last step
                        && ::kill(process, SIGINT) == 0;
               });
  CHECK(fails_with(result, 1,
                   {"stopped in the evaluation on held-out samples; the "
                    "trained program is saved in "
                    + saved}));
  CHECK(std::filesystem::exists(saved));
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
