// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <support/files.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/precision.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("apps.train") {

namespace {

using json = nlohmann::json;
namespace fs = std::filesystem;

const std::string digits = TROUPE_DATA "/digits";
const std::string paddle_mlp = TROUPE_TEST_DATA "/paddle_programs/mlp";

std::vector<json> json_lines(const fs::path& file) {
  std::vector<json> all;
  for (const std::string& line : lines_of(read_bytes(file)))
    all.push_back(json::parse(line));
  return all;
}

std::vector<double> losses(const fs::path& metrics) {
  std::vector<double> all;
  for (const json& line : json_lines(metrics))
    all.push_back(line["loss"].get<double>());
  return all;
}

/// Copies the first samples of an IDX file.
void copy_samples(const fs::path& from, const fs::path& to, unsigned count,
                  std::size_t header, std::size_t sample_bytes) {
  auto bytes = read_bytes(from).substr(0, header + count * sample_bytes);
  for (std::size_t i = 0; i < 4; ++i) // how many there are, big-endian
    bytes[4 + i] = static_cast<char>(count >> (24 - 8 * i));
  write_bytes(to, bytes);
}

/// Makes a folder with the first 320 training samples of the digits, with or
/// without the held-out ones. A test trains on them in a fifth of the time.
std::string few_digits(const temporary_folder& in, bool held_out) {
  const auto folder = in / (held_out ? "few" : "few_bare");
  const std::string images = "train-images-idx3-ubyte",
                    labels = "train-labels-idx1-ubyte";
  fs::create_directory(folder);
  copy_samples(digits / fs::path(images), folder / images, 320, 16, 64);
  copy_samples(digits / fs::path(labels), folder / labels, 320, 8, 1);
  for (const auto* file : {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
    if (held_out)
      fs::copy(digits / fs::path(file), folder);
  return folder;
}

} // namespace

TEST_CASE("training in bfloat16 follows training in float32") {
  const temporary_folder folder;
  const auto run = [&](const std::string& precision) {
    const auto file = folder / (precision + ".jsonl");
    const auto result =
      run_troupe({"train", "digits", "--data", digits, "--steps", "12",
                  "--seed", "3", "--precision", precision, "--metrics", file});
    if (result.code != 0) {
      CHECK(contains(result.err, "bf16"));
      return std::vector<double>{};
    }
    return losses(file);
  };
  const auto exact = run("fp32"), rounded = run("bf16");
  REQUIRE(exact.size() == 12);
  if (!has_precision(precision::bfloat16)) {
    CHECK(rounded.empty());
    return;
  }
  REQUIRE(rounded.size() == 12);
  CHECK(rounded != exact);
  for (std::size_t s = 0; s < exact.size(); ++s)
    CHECK(rounded[s] == doctest::Approx(exact[s]).epsilon(0.02));
}

TEST_CASE("small batches whose gradients are accumulated train like large "
          "ones") {
  const temporary_folder folder;
  const auto data = folder / "d.csv";
  {
    std::ofstream csv{data};
    for (int sample = 0; sample < 40; ++sample) {
      for (int i = 0; i < 784; ++i)
        csv << (i * i + 31 * sample) % 101 / 101.0 << ',';
      csv << sample % 10 << '\n';
    }
  }
  arena memory{make_host_memory_source()};
  const auto weights = [&](const words& more) {
    const auto out = folder / "out.npz";
    const auto result =
      run_troupe(words{"train", "mlp", "--data", data, "--epochs", "2",
                       "--seed", "4", "--fetch", "fc_0.w_0", "--fetch-out", out}
                 + more);
    CHECK(result.code == 0);
    const auto all = read_npz(out, memory).at("fc_0.w_0");
    return all.rows(all.dims()[0] - 1, 1);
  };
  for (const auto* devices : {"cpu:1", "cpu:2"}) {
    CAPTURE(devices);
    // The last update of an epoch has 8 samples.
    const auto expected = weights({"--devices", devices, "--batch", "16"});
    const auto actual =
      weights({"--devices", devices, "--batch", "4", "--accumulate", "4"});
    REQUIRE(actual.numel() == expected.numel());
    float largest = 0;
    for (std::size_t i = 0; i < actual.values<float>().size(); ++i)
      largest = std::max(largest, std::abs(actual.values<float>()[i]
                                           - expected.values<float>()[i]));
    CHECK(largest < 1e-6f);
    const auto other = weights({"--devices", devices, "--batch", "4"});
    CHECK(other.values<float>()[0] != expected.values<float>()[0]);
  }
}

TEST_CASE("an update that an epoch cannot fill is told") {
  const auto result =
    run_troupe({"train", "mlp", "--synthetic", "--batch", "4", "--steps", "2",
                "--devices", "cpu:1", "--accumulate", "9"});
  CHECK(result.code == 0);
  CHECK(contains(result.err, "warning: --accumulate 9: an epoch has only 8 "
                             "steps, and its last one updates the parameters"));
}

TEST_CASE("a profile names the ops of a step and what each worker left idle") {
  const auto text = run_troupe({"train", "mlp", "--synthetic", "--steps", "4",
                                "--threads", "1", "--profile"});
  CHECK(text.code == 0);
  CHECK(contains(text.out, " ms per step over 2 steps"));
  CHECK(contains(text.out, "\nmul_grad "));
  CHECK(contains(text.out, "\nworker 0 idle "));
  const auto one = run_troupe({"train", "mlp", "--synthetic", "--steps", "1",
                               "--threads", "1", "--profile", "--json"});
  CHECK(one.code == 0);
  const auto profile = json::parse(lines_of(one.out).back())["profile"];
  CHECK(profile["steps"] == 1);
  CHECK(profile["ops"]["momentum"]["count"] == 6);
  CHECK(profile["ops"]["mul"]["flops"].get<double>() > 0);
}

TEST_CASE("digits are learned, saved, and evaluated to the same numbers") {
  const temporary_folder folder;
  const std::string saved = folder / "saved";
  const std::string curve = folder / "loss.svg";
  const auto trained = run_troupe(
    {"train", "digits", "--data", digits, "--devices", "cpu:2", "--epochs", "4",
     "--seed", "1", "--save", saved, "--loss-curve", curve});
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  REQUIRE(lines_of(trained.out).size() == 1);
  double accuracy = 0;
  long long correct = 0, total = 0;
  CHECK(std::sscanf(trained.out.c_str(),
                    "held_out_accuracy=%lf correct=%lld total=%lld\n",
                    &accuracy, &correct, &total)
        == 3);
  CHECK(total == 297);
  CHECK(accuracy > 0.9);
  CHECK(accuracy
        == doctest::Approx(static_cast<double>(correct) / 297).epsilon(1e-3));
  CHECK(contains(trained.err, "epoch 4/4"));
  CHECK(contains(trained.err, "op actors"));
  CHECK(read_bytes(curve).starts_with("<svg"));
  CHECK(folder.entries() == 2);

  const auto evaluated =
    run_troupe({"eval", saved, "--params", saved, "--data", digits});
  INFO(evaluated.err);
  REQUIRE(evaluated.code == 0);
  const json result = json::parse(evaluated.out);
  CHECK(result["correct"] == correct);
  CHECK(result["total"] == 297);
  CHECK(result["loss"].get<double>() > 0);
  CHECK(json::parse(run_troupe({"eval", "digits", "--params",
                                saved + "/params.pdiparams", "--data", digits})
                      .out)
        == result);
}

TEST_CASE("each epoch is tested on held-out samples, the last one as the run") {
  const auto held_out_of = [](const command_result& result) {
    std::vector<std::string> told;
    for (const auto& text : lines_of(result.err))
      if (text.starts_with("epoch "))
        told.push_back(
          text.substr(std::min(text.find("held-out"), text.size())));
    return told;
  };
  const temporary_folder folder;
  const auto data = few_digits(folder, true);
  std::vector<std::string> at_ends; // told last by runs of 1, 2, ... epochs
  for (std::size_t epochs = 1; epochs <= 4; ++epochs) {
    CAPTURE(epochs);
    const auto result =
      run_troupe({"train", "digits", "--data", data, "--epochs",
                  std::to_string(epochs), "--devices", "cpu:1"});
    REQUIRE(result.code == 0);
    const auto told = held_out_of(result);
    REQUIRE(told.size() == epochs);
    // An epoch is tested before the next one changes the parameters.
    CHECK(std::equal(at_ends.begin(), at_ends.end(), told.begin()));
    CHECK(std::ranges::count(told, told.back()) == 1);
    at_ends.push_back(told.back());
    double loss = 0, accuracy = 0, of_run = 0;
    REQUIRE(std::sscanf(told.back().c_str(), "held-out loss %lf, accuracy %lf",
                        &loss, &accuracy)
            == 2);
    CHECK(loss > 0);
    REQUIRE(std::sscanf(result.out.c_str(), "held_out_accuracy=%lf", &of_run)
            == 1);
    CHECK(accuracy == of_run);
  }
  const auto part = run_troupe(
    {"train", "digits", "--data", data, "--steps", "3", "--devices", "cpu:1"});
  CHECK(held_out_of(part)[0].starts_with("held-out loss"));
  const auto without = run_troupe({"train", "digits", "--synthetic"});
  CHECK(held_out_of(without) == std::vector<std::string>{""});
}

TEST_CASE("tests on held-out samples leave no trace in what is trained") {
  const temporary_folder folder;
  const auto held_out = few_digits(folder, true),
             bare = few_digits(folder, false);
  const std::vector<std::vector<std::string>> ways{
    {"--devices", "cpu:1"},
    {"--devices", "cpu:2", "--strategy", "reduce"},
    {"--devices", "cpu:2", "--strategy", "all_reduce"},
    {"--devices", "cpu:2", "--strategy", "replicate"},
    {"--devices", "cpu:2", "--strategy", "none"}};
  for (const auto& way : ways) {
    CAPTURE(way.back());
    const auto train = [&](const std::string& data) {
      const std::string saved = folder / "saved";
      const std::string metrics = folder / "m.jsonl";
      const auto result =
        run_troupe(std::vector<std::string>{
                     "train", "digits", "--data", data, "--epochs", "3",
                     "--deterministic", "--save", saved, "--metrics", metrics}
                   + way);
      REQUIRE(result.code == 0);
      CHECK(contains(result.err, "held-out") == (data == held_out));
      return std::pair{read_bytes(saved + "/params.pdiparams"),
                       losses(metrics)};
    };
    const auto tested = train(held_out), untested = train(bare);
    CHECK(tested.first == untested.first);
    CHECK(tested.second == untested.second);
  }
}

TEST_CASE("a run from saved parameters goes on, and says that it counts anew") {
  const temporary_folder folder;
  const std::string saved = folder / "saved", metrics = folder / "m.jsonl";
  const std::vector<std::string> train{"train",   "mlp",       "--synthetic",
                                       "--steps", "8",         "--devices",
                                       "cpu:1",   "--metrics", metrics};
  const auto first =
    run_troupe(train + std::vector<std::string>{"--save", saved});
  REQUIRE(first.code == 0);
  CHECK_FALSE(contains(first.err, "count from the first"));
  const auto before = losses(metrics);
  const auto second =
    run_troupe(train + std::vector<std::string>{"--params", saved});
  REQUIRE(second.code == 0);
  CHECK(contains(second.err, "parameters from " + saved
                               + "; steps and epochs of this run count from "
                                 "the first\n"));
  CHECK(json_lines(metrics).front()["step"] == 0);
  CHECK(losses(metrics).front() < before.front());
}

TEST_CASE("a program of Paddle gives the losses of Paddle's executor") {
  const temporary_folder folder;
  const auto wanted =
    json::parse(read_bytes(paddle_mlp + "/expected.json"))["losses"];
  for (const std::string devices : {"cpu", "cpu:2", "cpu:4"}) {
    CAPTURE(devices);
    const std::string metrics = folder / "m.jsonl";
    const auto result =
      run_troupe({"train", paddle_mlp, "--feeds", paddle_mlp + "/feeds.npz",
                  "--params", paddle_mlp + "/params0.pdiparams", "--devices",
                  devices, "--metrics", metrics});
    INFO(result.err);
    REQUIRE(result.code == 0);
    const auto given = losses(metrics);
    REQUIRE(given.size() == wanted["executor"].size());
    for (std::size_t i = 0; i < given.size(); ++i)
      CHECK(
        given[i]
        == doctest::Approx(wanted["executor"][i].get<double>()).epsilon(1e-5));
  }
}

TEST_CASE("metrics are one line per step with five keys") {
  const temporary_folder folder;
  const std::string metrics = folder / "m.jsonl";
  REQUIRE(
    run_troupe({"train", "mlp", "--synthetic", "--batch", "5", "--devices",
                "cpu:2", "--steps", "3", "--metrics", metrics})
      .code
    == 0);
  const auto lines = json_lines(metrics);
  REQUIRE(lines.size() == 3);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const json& line = lines[i];
    CHECK(line.size() == 5);
    CHECK(line["step"] == i);
    CHECK(line["ms"].get<double>() >= 0);
    CHECK(line["samples_per_s"].is_number());
    REQUIRE(line["losses"].size() == 2);
    const double a = line["losses"][0], b = line["losses"][1];
    CHECK(line["loss"].get<double>() == doctest::Approx((3 * a + 2 * b) / 5));
  }
}

TEST_CASE("a device without samples has no loss") {
  const temporary_folder folder;
  const std::string metrics = folder / "m.jsonl";
  REQUIRE(
    run_troupe({"train", "mlp", "--synthetic", "--batch", "1", "--devices",
                "cpu:2", "--steps", "1", "--metrics", metrics})
      .code
    == 0);
  const auto line = json_lines(metrics).at(0);
  CHECK(line["loss"] == line["losses"][0]);
  CHECK(line["losses"][1].is_null());
}

TEST_CASE("the same seed gives the same losses, another seed others") {
  const temporary_folder folder;
  const std::string metrics = folder / "m.jsonl";
  const auto run = [&](const std::string& seed) {
    REQUIRE(run_troupe({"train", "digits", "--data", digits, "--steps", "4",
                        "--devices", "cpu:2", "--deterministic", "--seed", seed,
                        "--metrics", metrics})
              .code
            == 0);
    return losses(metrics);
  };
  const auto first = run("1");
  CHECK(run("1") == first);
  CHECK(run("2") != first);
}

TEST_CASE("results are JSON lines on stdout with --json") {
  const auto result =
    run_troupe({"train", "digits", "--data", digits, "--steps", "2", "--json"});
  REQUIRE(result.code == 0);
  const auto lines = lines_of(result.out);
  REQUIRE(lines.size() == 2);
  CHECK(json::parse(lines[0])["steps"] == 2);
  CHECK(json::parse(lines[0])["messages"].get<int>() > 0);
  CHECK(json::parse(lines[1])["total"] == 297);
}

TEST_CASE("fetched variables have a leading axis of steps") {
  arena memory(make_host_memory_source());
  const temporary_folder folder;
  const auto inspected =
    json::parse(run_troupe({"inspect", "mlp", "--json"}).out);
  const std::string loss = inspected["loss"];
  const std::string weight = inspected["parameters"][0]["name"];
  const std::string out = folder / "f.npz";
  const auto result =
    run_troupe({"train", "mlp", "--synthetic", "--steps", "3", "--devices",
                "cpu:2", "--fetch", loss + "," + weight, "--fetch-out", out});
  INFO(result.err);
  REQUIRE(result.code == 0);
  const auto arrays = read_npz(out, memory);
  CHECK(arrays.at(loss).dims() == shape{3, 2});
  CHECK(arrays.at(weight).dims()[0] == 3);
}

TEST_CASE("a dry run sends messages and computes nothing") {
  const auto result = run_troupe({"train", "mlp", "--dry-run", "--steps", "5",
                                  "--devices", "cpu:2", "--json"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(json::parse(result.out)["steps"] == 5);
  CHECK_FALSE(contains(result.err, "warning"));
}

TEST_CASE("a dry run saves no parameters, which would be untrained") {
  const auto result = run_troupe({"train", "mlp", "--dry-run", "--steps", "5",
                                  "--devices", "cpu:1", "--save", "saved"});
  CHECK(result.code == 2);
  CHECK(contains(result.err, "--dry-run excludes --save"));
}

TEST_CASE("a trial of devices is told of where there is one") {
  const auto tells = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"train", "mlp", "--synthetic", "--steps",
                                   "1"};
    words.insert(words.end(), more.begin(), more.end());
    const auto result = run_troupe(words);
    REQUIRE(result.code == 0);
    return contains(result.err, "trying one CPU device");
  };
  CHECK(tells({"--batch", "4"}) == (usable_cores() > 1));
  CHECK_FALSE(tells({"--batch", "1"}));
  CHECK_FALSE(tells({"--batch", "4", "--threads", "1"}));
  CHECK_FALSE(tells({"--batch", "4", "--deterministic"}));
  CHECK_FALSE(tells({"--batch", "4", "--strategy", "none"}));
}

TEST_CASE("OpenBLAS code that the processor cannot run is not used") {
  for (const auto* core : {"SkylakeX", "Bulldozer", "Opteron"}) {
    CAPTURE(core);
    ::setenv("OPENBLAS_CORETYPE", core, 1);
    const auto result = run_troupe({"train", "digits", "--data", digits,
                                    "--steps", "1", "--devices", "cpu:1"});
    ::unsetenv("OPENBLAS_CORETYPE");
    INFO(result.err);
    CHECK(result.code == 0);
  }
}

TEST_CASE("slow ops compute the same and take longer") {
  const auto trained = [](const std::string& slow) {
    const auto result =
      run_troupe({"train", "mlp", "--synthetic", "--devices", "cpu:1",
                  "--steps", "2", "--json", "--slow", slow});
    INFO(result.err);
    REQUIRE(result.code == 0);
    return nlohmann::json::parse(result.out);
  };
  const auto fast = trained("relu=0ms");
  const auto slow = trained("relu=20ms,mean=1us");
  CHECK(slow["loss"] == fast["loss"]);
  CHECK(slow["seconds"].get<double>() > 0.04);
  CHECK(trained("relu=x3")["loss"] == fast["loss"]);
  CHECK(trained("fc_0.tmp_0=x3")["loss"] == fast["loss"]);
  CHECK(
    fails_with(run_troupe({"train", "mlp", "--synthetic", "--slow", "no=1s"}),
               2, {"--slow: the program has no op of type 'no'"}));
  CHECK(
    fails_with(run_troupe({"train", "mlp", "--synthetic", "--slow", "relu"}), 2,
               {"--slow"}));
}

} // TEST_SUITE("apps.train")
