// SPDX-License-Identifier: Apache-2.0
// Runs programs of real Paddle through the command line. tests/paddle runs them
// through the C++ interface.

#include "apps/command_runner.hpp"
#include "paddle/program_fixture.hpp"

#include <support/files.hpp>
#include <troupe/graph/paddle/parameter_file.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.paddle_programs") {

namespace {

using nlohmann::json;

loss_curve read_metrics(const std::string& file) {
  loss_curve curve;
  for (const std::string& line : lines_of(read_bytes(file))) {
    const json step = json::parse(line);
    curve.losses.push_back(step["loss"]);
    curve.device_losses.push_back(step["losses"]);
  }
  return curve;
}

void check_saved(const program_fixture& fixture, const std::string& folder) {
  arena memory{make_host_memory_source()};
  scope saved;
  load_parameters(fixture.main(), folder + "/params.pdiparams", saved, memory);
  fixture.check_parameters(saved);
}

void check_command(const std::string& name, const std::string& mode_name) {
  CAPTURE(name);
  CAPTURE(mode_name);
  const program_fixture fixture{name};
  const run_mode mode = mode_of(mode_name);
  const temporary_folder folder;
  const std::string metrics = folder / "m.jsonl", saved = folder / "saved";
  const auto trained = run_troupe(
    {"train", fixture.folder(), "--params", fixture.file("params0.pdiparams"),
     "--feeds", fixture.file("feeds.npz"), "--steps", "8", "--devices",
     mode.devices, "--strategy", mode.strategy, "--metrics", metrics, "--save",
     saved});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  fixture.check_losses(mode, read_metrics(metrics));
  if (mode_name == "executor")
    check_saved(fixture, saved);
}

void check_eval(const std::string& name) {
  CAPTURE(name);
  const program_fixture fixture{name};
  const auto evaluated = run_troupe(
    {"eval", fixture.folder(), "--params", fixture.file("params8.pdiparams"),
     "--feeds", fixture.file("feeds.npz"), "--steps", "1"});
  INFO(evaluated.err);
  REQUIRE(evaluated.code == 0);
  const double loss = json::parse(evaluated.out)["loss"];
  CHECK(std::abs(loss - fixture.test_loss()) <= 2e-5 * fixture.test_loss());
}

} // namespace

TEST_CASE("programs of Paddle train to Paddle's losses and parameters") {
  check_command("mlp", "executor");
  check_command("word2vec_sparse_adam_lazy", "executor");
  check_command("resnet8_plain", "allreduce2");
  check_command("lenet", "allreduce4");
  check_command("word2vec_sparse", "reduce4");
}

TEST_CASE("programs of Paddle are evaluated to Paddle's loss") {
  check_eval("resnet8_bn");
  check_eval("word2vec_dense_adam");
}

TEST_CASE("parameters may be a file per variable") {
  const program_fixture fixture{"mlp"};
  const temporary_folder folder;
  const std::string metrics = folder / "m.jsonl";
  const auto trained = run_troupe({"train", fixture.folder(), "--params",
                                   fixture.file("params0_separate"), "--feeds",
                                   fixture.file("feeds.npz"), "--steps", "8",
                                   "--devices", "cpu:1", "--metrics", metrics});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  fixture.check_losses(mode_of("executor"), read_metrics(metrics));
}
} // TEST_SUITE("apps.paddle_programs")
