// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <troupe/apps/bench/inference/inference_load.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/optimizer.hpp>
#include <troupe/kernels/precision.hpp>
#include <troupe/training/inference_session.hpp>

#include <support/caught.hpp>
#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

using namespace troupe::apps;
using namespace troupe::test;

TEST_SUITE("apps.bench_inference") {

TEST_CASE("bench inference merges requests and finds no wrong reply") {
  for (const char* callers : {"functions", "threads"}) {
    const auto result =
      run_troupe({"bench", "inference", "mlp", "--requests", "400", "--callers",
                  "8", "--most-samples", "3", "--max-batch", "6",
                  "--callers-are", callers, "--json"});
    INFO(result.err);
    REQUIRE(result.code == 0);
    const auto lines = lines_of(result.out);
    REQUIRE(lines.size() == 2);
    const auto alone = nlohmann::json::parse(lines[0]);
    const auto merged = nlohmann::json::parse(lines[1]);
    CHECK(alone["max_batch"] == 1);
    CHECK(alone["requests_per_step"] == 1);
    CHECK(alone["ratio"] == 1);
    CHECK(merged["max_batch"] == 6);
    CHECK(merged["requests"] == 400);
    CHECK(merged["requests_per_step"] > 1);
    CHECK(merged["p99_us"] >= merged["p50_us"]);
    CHECK(alone["wrong"] == 0);
    CHECK(merged["wrong"] == 0);
  }
}

TEST_CASE(
  "bench inference allows answers the rounding of their number format") {
  for (const std::string precision : {"fp32", "bf16"}) {
    if (precision == "bf16"
        && !troupe::has_precision(troupe::precision::bfloat16))
      continue;
    const auto result =
      run_troupe({"bench", "inference", "mlp", "--requests", "64", "--callers",
                  "8", "--max-batch", "8", "--precision", precision, "--json"});
    INFO(result.err);
    REQUIRE(result.code == 0);
    const auto merged = nlohmann::json::parse(lines_of(result.out).at(1));
    CHECK(merged["precision"] == precision);
    CHECK(merged["wrong"] == 0);
  }
}

TEST_CASE("bench inference needs answers that it can tell apart") {
  const temporary_folder folder;
  troupe::graph::network net;
  const auto x = net.data("x", {-1, 4});
  const auto nothing = troupe::layers::scale(x, {.scale = 0});
  troupe::optimizer::sgd().minimize(
    troupe::layers::mean(troupe::layers::fc(nothing, 1)));
  troupe::scope started;
  run_startup(net.startup, started);
  const auto place = (folder / "net").string();
  save_program(troupe::make_training_program(net.startup, net.main), 1, started,
               place);
  CHECK(fails_with(run_troupe({"bench", "inference", place}), 2,
                   {place, "--output"}));
  CHECK(fails_with(
    run_troupe({"bench", "inference", place, "--output", nothing.name()}), 1,
    {nothing.name(), "same answer"}));
  CHECK(
    fails_with(run_troupe({"bench", "inference", "mlp", "--output", "nothing"}),
               2, {"--output: the program has no variable 'nothing'"}));
}

TEST_CASE("an answer of another sample is a wrong one") {
  const known_answers known{load_program("mlp", ""), "", 3,
                            troupe::precision::float32};
  troupe::inference_session session{load_program("mlp", "").test,
                                    known.parameters(),
                                    {.outputs = {known.output()}}};
  const auto answer = session.predict(known.request(5, 2)).get();
  CHECK(known.is_answer(answer, 5, 2));
  CHECK_FALSE(known.is_answer(answer, 6, 2));
  CHECK_FALSE(known.is_answer(answer, 5, 1));
}

} // TEST_SUITE("apps.bench_inference")
