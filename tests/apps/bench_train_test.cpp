// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <troupe/apps/bench/training_bench.hpp>
#include <troupe/apps/machine.hpp>
#include <troupe/apps/machine_roofline.hpp>
#include <troupe/base/error.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/kernel_options.hpp>

#include <support/files.hpp>
#include <support/machine.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::test;

TEST_SUITE("apps.bench_train") {

namespace {

training_bench_options small_net(std::uint32_t in_flight = 1) {
  training_bench_options options;
  options.network.program = "mlp";
  options.network.devices = "cpu:1"; // an automatic choice could vary
  options.batch = 4;
  options.in_flight = in_flight;
  return options;
}

/// The command's answers to lines on its standard input.
std::string answers(const std::string& input, const std::string& arguments) {
  const auto line =
    "printf -- '" + input + "' | " + TROUPE_COMMAND + " " + arguments + " 2>&1";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(
    ::popen(line.c_str(), "r"), ::pclose);
  std::string text;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get()))
    text += static_cast<char>(c);
  return text;
}

} // namespace

TEST_CASE("bench train tells time, rates and shares") {
  const auto result = run_troupe(
    {"bench", "train", "mlp", "--devices", "cpu:2", "--steps", "3", "--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto out = nlohmann::json::parse(result.out);
  CHECK(out["batch"] == 64);
  // Three products per layer, except for the gradient of the image.
  const double layers = 784 * 512 + 512 * 256 + 256 * 10, first = 784 * 512;
  CHECK(out["gflop_per_step"].get<double>()
        == doctest::Approx(2 * 64 * (3 * layers - first) * 1e-9));
  const double ms = out["ms"];
  CHECK(out["min_ms"] <= ms);
  CHECK(out["samples_per_s"].get<double>() == doctest::Approx(64e3 / ms));
  CHECK(out["gflops"].get<double>()
        == doctest::Approx(out["gflop_per_step"].get<double>() / ms * 1e3));
  CHECK(out["peak_share"].get<double>()
        == doctest::Approx(out["gflops"].get<double>()
                           / out["machine"]["gflops"].get<double>()));
  CHECK(out["attainable_share"].get<double>()
        == doctest::Approx(out["attainable_ms"].get<double>() / ms));
  CHECK(out["machine"]["gb_per_s"] > 0);
  CHECK(out["peak_bytes"] > 64 * 784 * 4);
  CHECK(out["grown_bytes"] > out["peak_bytes"]);
}

TEST_CASE("bench train takes the precision of products") {
  const auto result =
    run_troupe({"bench", "train", "mlp", "--batch", "3", "--steps", "1",
                "--warm-up", "0", "--precision", "bf16", "--json"});
  INFO(result.err);
  if (!has_precision(precision::bfloat16)) {
    CHECK(fails_with(result, 1, {"this processor does not multiply in bf16"}));
    return;
  }
  REQUIRE(result.code == 0);
  CHECK(nlohmann::json::parse(result.out)["precision"] == "bf16");
}

TEST_CASE("bench train can do without Winograd's method") {
  if (!has_own_loops())
    return skip_case("needs AVX2");
  const auto loss = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{
      "bench",     "train", "resnet8", "--batch", "2",
      "--devices", "cpu:1", "--steps", "2",       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return nlohmann::json::parse(run_troupe(arguments).out)["loss"]
      .get<double>();
  };
  const auto direct = loss({"--no-winograd"});
  CHECK(direct != loss({})); // rounded otherwise
  CHECK(direct == doctest::Approx(loss({})).epsilon(1e-4));
}

TEST_CASE("bench train answers in one line of text") {
  const auto result =
    run_troupe({"bench", "train", "mlp", "--batch", "3", "--steps", "1",
                "--warm-up", "0", "--devices", "cpu:1"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(lines_of(result.out).size() == 1);
  CHECK(result.out.starts_with("mlp, batch 3, cpu:1, "));
}

TEST_CASE("the same seed gives the same losses, steps overlapping or not") {
  const auto losses = training_bench(small_net()).run(6).losses;
  CHECK(losses.size() == 6);
  CHECK(training_bench(small_net()).run(6).losses == losses);
  CHECK(training_bench(small_net(2)).run(6).losses == losses);
  auto other = small_net();
  other.seed = 7;
  CHECK(training_bench(other).run(6).losses != losses);
}

TEST_CASE("a start file holds all parameters and batches") {
  const temporary_folder folder;
  training_bench bench(small_net());
  bench.write_start(folder / "start.npz");
  troupe::arena memory(troupe::make_host_memory_source());
  const auto arrays = troupe::read_npz(folder / "start.npz", memory);
  CHECK(arrays.size() == 6 + 8 * 2);
  CHECK(arrays.at("param/fc_0.w_0").dims() == troupe::shape{784, 512});
  CHECK(arrays.at("feed/7/image").dims() == troupe::shape{4, 784});
  CHECK(arrays.at("feed/7/label").type() == troupe::dtype::int64);
}

TEST_CASE("turns go on where the last one ended") {
  const auto lines = lines_of(
    answers("2\\n1\\n", "bench train mlp --devices cpu:1 --batch 4 --turns"));
  REQUIRE(lines.size() == 3);
  CHECK(nlohmann::json::parse(lines[0])["peer"].get<std::string>().starts_with(
    "troupe "));
  const auto first = nlohmann::json::parse(lines[1]);
  CHECK(first["ms"].size() == 2);
  CHECK(first["grown_bytes"] > 0);
  auto losses = first["losses"].get<std::vector<double>>();
  losses.push_back(nlohmann::json::parse(lines[2])["losses"][0]);
  CHECK(losses == training_bench(small_net()).run(3).losses);
}

TEST_CASE("a turn that is no number of steps is refused") {
  for (auto* turn : {"0", "-1", "many", "1.5", ""}) {
    CAPTURE(turn);
    const auto lines =
      lines_of(answers(std::string(turn) + "\\n",
                       "bench train mlp --devices cpu:1 --batch 4 --turns"));
    REQUIRE(lines.size() == 2);
    CHECK(lines[1]
          == "troupe: a turn is a number of steps, not '" + std::string(turn)
               + "'");
  }
  CHECK(lines_of(answers("1\\0002\\n",
                         "bench train mlp --devices cpu:1 --batch 4 --turns"))
          .back()
        == R"(troupe: a turn is a number of steps, not '1\x002')");
}

TEST_CASE("bench train refuses what it cannot measure") {
  CHECK(fails_with(run_troupe({"bench", "train"}), 2, {"PROGRAM|NET"}));
  CHECK(fails_with(run_troupe({"bench", "train", "alexnet"}), 2, {"alexnet"}));
  CHECK(fails_with(run_troupe({"bench", "train", "mlp", "--steps", "0"}), 2,
                   {"--steps"}));
  CHECK(fails_with(run_troupe({"bench", "train", "mlp", "--batch", "0"}), 2,
                   {"--batch"}));
  CHECK(fails_with(run_troupe({"bench", "train", "mlp", "--threads", "4096"}),
                   2, {"--threads", "cores"}));
  CHECK(fails_with(run_troupe({"bench", "train", "mlp", "--devices", "tpu"}), 2,
                   {"tpu"}));
  CHECK(fails_with(run_troupe({"bench", "train", "mlp", "--save-start",
                               "/no/such/folder/start.npz"}),
                   1, {"/no/such/folder"}));
}

TEST_CASE("a machine's roofline needs a thread") {
  CHECK_THROWS_AS(measure_roofline(0), troupe::error);
}

TEST_CASE("the memory of a process grows and its peak stays") {
  const auto before = resident_bytes();
  constexpr std::size_t bytes = 64 << 20;
  { const std::vector<char> block(bytes, 1); }
  // The system updates its page counts in batches of a few dozen.
  CHECK(peak_resident_bytes() > before + bytes / 10 * 9);
  CHECK(peak_resident_bytes() >= resident_bytes());
}

} // TEST_SUITE("apps.bench_train")
