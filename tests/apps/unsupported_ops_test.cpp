// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <support/files.hpp>
#include <troupe/graph/models.hpp>
#include <troupe/graph/paddle/program_folder.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.unsupported_ops") {

namespace {

const std::string fixture = TROUPE_TEST_DATA "/paddle_programs/mlp";

/// A program with unknown ops: two in the main block of the main program, one
/// of them also in a sub-block, and one in the startup program.
struct strange_program {
  temporary_folder folder;

  strange_program() {
    auto read = graph::read_program_folder(fixture);
    for (graph::op_desc& op : read.main.main().ops)
      if (op.type.starts_with("relu"))
        op.type = "fold_" + op.type;
    auto& inner = read.main.blocks.emplace_back();
    inner.index = 1;
    inner.parent = 0;
    inner.ops.emplace_back().type = "fold_relu";
    read.startup.main().ops.front().type = "throw_dice";
    graph::write_program_folder(read, folder.path());
  }
  std::string path() const { return folder.path().string(); }
};

} // namespace

TEST_CASE_FIXTURE(strange_program, "train lists all ops without a kernel") {
  const auto result =
    run_troupe({"train", path(), "--feeds", fixture + "/feeds.npz"});
  CHECK(fails_with(result, 1,
                   {"no kernels for these ops: fold_relu (3), "
                    "fold_relu_grad (2); of the startup program: "
                    "throw_dice (1)"}));
  CHECK(lines_of(result.err).size() == 1);
}

TEST_CASE_FIXTURE(strange_program, "inspect shows the same list") {
  const auto found =
    nlohmann::json::parse(run_troupe({"inspect", path(), "--json"}).out);
  CHECK(found["unsupported_ops"].dump()
        == R"({"fold_relu":3,"fold_relu_grad":2})");
  CHECK(found["unsupported_startup_ops"].dump() == R"({"throw_dice":1})");
  const auto text = run_troupe({"inspect", path()});
  CHECK(text.code == 0);
  CHECK(contains(text.out, "no kernels for these ops\n"));
  CHECK(contains(text.out, "throw_dice"));
}

TEST_CASE("a program that can run has no unsupported ops") {
  const auto found =
    nlohmann::json::parse(run_troupe({"inspect", fixture, "--json"}).out);
  CHECK(found["unsupported_ops"].empty());
  CHECK(found["unsupported_startup_ops"].empty());
}

TEST_CASE(
  "inspect lists the ops without a kernel on devices that are not there") {
  const auto missing = [](const std::string& net) {
    const auto text =
      run_troupe({"inspect", net, "--devices", "cuda:0", "--json"}).out;
    return nlohmann::json::parse(text)["unsupported_ops"];
  };
  for (auto& [net, build] : graph::models())
    CHECK_MESSAGE(missing(net).empty(), net);
  for (auto& entry :
       std::filesystem::directory_iterator(TROUPE_TEST_DATA "/paddle_programs"))
    if (entry.is_directory())
      CHECK_MESSAGE(missing(entry.path().string()).empty(), entry.path());
  const auto lstm =
    missing(TROUPE_TEST_DATA "/paddle_sequences/lstm/main.pdmodel");
  CHECK(lstm.contains("rnn"));
  CHECK_FALSE(lstm.contains("mul"));
}
} // TEST_SUITE("apps.unsupported_ops")
