// SPDX-License-Identifier: Apache-2.0
//
// The command with few addresses (`ulimit -v`) or little data (`ulimit -d`).
#include "apps/command_runner.hpp"

#include <support/files.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <cstdlib>

using namespace troupe::test;

TEST_SUITE("apps.address_limit") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
TEST_CASE("a process with few addresses or little data") {
  return skip_case("a sanitizer needs more of both than the limits allow");
}
#else
namespace {

using words = std::vector<std::string>;

/// In KiB. With 1 MiB the process does not start. OpenBLAS's own thread starts
/// with 9 MiB and waits for ever with less than 150 MiB.
constexpr std::size_t little_data[] = {2'000,  9'000,   10'000,  50'000,
                                       80'000, 140'000, 200'000, 300'000};

} // namespace

TEST_CASE("a process with few addresses says so or trains") {
  for (auto* devices : {"cpu:1", "cpu:2"})
    for (std::size_t kib : {350'000, 500'000, 700'000, 900'000, 1'200'000}) {
      CAPTURE(kib);
      const auto result =
        run_troupe_within(kib, {"train", "mlp", "--synthetic", "--steps", "2",
                                "--batch", "256", "--devices", devices});
      CHECK((result.code == 0 || fails_with(result, 1, {})));
      if (kib < 400'000)
        CHECK(fails_with(result, 1,
                         {"the limit of 341 MiB of addresses (ulimit -v) "
                          "leaves ",
                          " MiB, but libraries and tensors need "}));
    }
}

TEST_CASE("a measurement with few addresses says so or ends well") {
  for (std::size_t mib : {700, 770, 780, 790, 820, 1200}) {
    CAPTURE(mib);
    const auto result = run_troupe_within(
      mib * 1024, {"bench", "train", "lenet", "--steps", "1"});
    CHECK((result.code == 0 || fails_with(result, 1, {})));
  }
}

TEST_CASE("a command that computes little runs with little data") {
  for (const words& command :
       {words{"doctor"}, {"graph", "mlp"}, {"inspect", "mlp"}})
    for (const auto kib : little_data) {
      CAPTURE(command);
      CAPTURE(kib);
      CHECK(run_troupe_with_data(kib, command).code == 0);
    }
}

TEST_CASE("with little data no threads of OpenBLAS start, though asked for") {
  ::setenv("OPENBLAS_NUM_THREADS", "2", 1);
  const auto doctor = run_troupe_with_data(50'000, {"doctor"});
  ::unsetenv("OPENBLAS_NUM_THREADS");
  CHECK(doctor.code == 0);
}

TEST_CASE("a wrong command line with little data is refused in one line") {
  for (const auto kib : little_data)
    CHECK(fails_with(run_troupe_with_data(kib, {"train", "no_such_net"}), 2,
                     {"no_such_net"}));
}

TEST_CASE("a run with little data names the limit") {
  const temporary_folder folder;
  const std::string saved = folder / "saved";
  const auto made = run_troupe({"train", "digits", "--synthetic", "--steps",
                                "1", "--devices", "cpu:1", "--save", saved});
  REQUIRE(made.code == 0);
  for (const words& command :
       {words{"train", "mlp", "--synthetic", "--steps", "2"},
        {"eval", "digits", "--data", TROUPE_DATA "/digits", "--params", saved},
        {"bench", "train", "mlp", "--steps", "1", "--devices", "cpu:2"}})
    for (const auto kib : little_data) {
      CAPTURE(command);
      CAPTURE(kib);
      const auto result = run_troupe_with_data(kib, command);
      CHECK((result.code == 0 || fails_with(result, 1, {"ulimit -d)"})));
      if (kib > 200'000)
        continue; // enough for one worker
      CHECK(result.code == 1);
      if (command.front() == "train")
        CHECK(fails_with(result, 1, {" MiB of data (ulimit -d) leaves "}));
    }
}

TEST_CASE("a program that is too large for the data names the limits") {
  CHECK(fails_with(run_troupe_with_data(2'000, {"inspect", "resnet50"}), 1,
                   {"out of memory (limits: ulimit -v, ulimit -d)"}));
}

TEST_CASE("tensors leave data to libraries") {
  for (const std::size_t mib : {460, 490, 540, 590, 900}) {
    CAPTURE(mib);
    const auto result =
      run_troupe_with_data(mib * 1024, {"train", "resnet18", "--synthetic",
                                        "--steps", "1", "--devices", "cpu:2"});
    CHECK((result.code == 0 || fails_with(result, 1, {"(ulimit -d)"})));
  }
}

#endif

} // TEST_SUITE("apps.address_limit")
