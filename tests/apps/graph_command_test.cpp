// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <support/files.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace troupe::test;

TEST_SUITE("apps.graph") {

namespace {

using json = nlohmann::json;

std::set<std::string> keys(const json& object) {
  std::set<std::string> found;
  for (auto& [key, value] : object.items())
    found.insert(key);
  return found;
}

} // namespace

TEST_CASE("the graph as JSON has the documented keys and closed edges") {
  const auto result = run_troupe({"graph", "mlp", "--devices", "cpu:2"});
  INFO(result.err);
  REQUIRE(result.code == 0);
  REQUIRE(lines_of(result.out).size() == 1);
  const json graph = json::parse(result.out);
  std::map<int, std::string> kinds;
  std::set<std::string> devices;
  for (const json& handle : graph["handles"]) {
    CHECK(keys(handle)
          == std::set<std::string>{"id", "kind", "type", "name", "version",
                                   "device", "stream"});
    kinds[handle["id"]] = handle["kind"];
    devices.insert(handle["device"]);
  }
  CHECK(devices == std::set<std::string>{"cpu:0", "cpu:1"});
  CHECK(kinds.size() == graph["handles"].size());
  for (const json& edge : graph["edges"]) {
    CHECK(keys(edge)
          == std::set<std::string>{"from", "to", "kind", "distance"});
    REQUIRE(kinds.contains(edge["from"]));
    REQUIRE(kinds.contains(edge["to"]));
    // Data flows from ops to variables and from variables to ops. A persistable
    // variable also passes its value from a step to the next.
    if (edge["kind"] == "data" && kinds[edge["from"]] == kinds[edge["to"]]) {
      CHECK(kinds[edge["from"]] == "var");
      CHECK(edge["distance"] == 1);
    }
  }
}

TEST_CASE("strategies differ in their collectives") {
  const auto types = [](const char* strategy, const char* devices = "cpu:2") {
    std::set<std::string> found;
    const auto result = run_troupe({"graph", "mlp", "--devices", devices,
                                    "--strategy", strategy, "--collectives"});
    const json graph = json::parse(result.out);
    for (const json& handle : graph["handles"])
      found.insert(handle["type"].get<std::string>());
    return found;
  };
  CHECK(types("all_reduce").contains("all_reduce"));
  CHECK(types("reduce").contains("reduce"));
  // The devices share parameters.
  CHECK_FALSE(types("reduce").contains("broadcast"));
  CHECK(types("reduce", "sim:2").contains("broadcast"));
  CHECK_FALSE(types("none").contains("all_reduce"));
}

TEST_CASE("the graph is what train runs with the same options") {
  const auto graph = json::parse(
    run_troupe({"graph", "mlp", "--devices", "cpu:2", "--json"}).out);
  std::size_t ops = 0;
  for (const json& handle : graph["handles"])
    ops += handle["kind"] == "op";
  const auto trained = run_troupe({"train", "mlp", "--synthetic", "--steps",
                                   "3", "--devices", "cpu:2", "--json"});
  REQUIRE(trained.code == 0);
  const auto summary = json::parse(lines_of(trained.out).front());
  CHECK(summary["op_actors"] == ops);
  CHECK(summary["variable_actors"] == graph["handles"].size() - ops);
  const auto wiring = json::parse(
    run_troupe({"graph", "mlp", "--devices", "cpu:2", "--wiring", "--json"})
      .out);
  CHECK(summary["messages"] == 3 * wiring["messages"].get<std::size_t>());
}

TEST_CASE("the command line of a training shows its graph") {
  const auto graph_with = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"graph", "mlp", "--devices", "cpu:2"};
    words.insert(words.end(), more.begin(), more.end());
    const auto result = run_troupe(words);
    INFO(result.err);
    CHECK(result.code == 0);
    return result.out;
  };
  const auto plain = graph_with({});
  const std::string place = "nowhere/at/all";
  const std::vector<std::vector<std::string>> without_effect{
    {"--synthetic"},           {"--steps", "3"},
    {"--epochs", "3"},         {"--params", place},
    {"--seed", "1"},           {"--save", place},
    {"--metrics", place},      {"--loss-curve", place},
    {"--check-nan"},           {"--profile"},
    {"--deterministic"},       {"--dry-run"},
    {"--memory-limit", "1GiB"}};
  for (const auto& option : without_effect) {
    CAPTURE(option.front());
    CHECK((graph_with(option) == plain));
  }
  const auto fetching = graph_with({"--fetch", "fc_0.tmp_2"});
  CHECK((fetching != plain));
  CHECK(
    (fetching == graph_with({"--fetch", "fc_0.tmp_2", "--fetch-out", place})));
}

TEST_CASE("the batch of a graph is that of the data") {
  const temporary_folder folder;
  const auto feeds = (folder.path() / "feeds.npz").string();
  arena memory{make_host_memory_source()};
  auto images = tensor::make(memory, {1, 1500, 784}, dtype::float32);
  auto labels = tensor::make(memory, {1, 1500, 1}, dtype::int64);
  std::ranges::fill(images.values<float>(), 0.0f);
  std::ranges::fill(labels.values<std::int64_t>(), 0);
  write_npz(feeds, {{"image", images}, {"label", labels}});
  const auto graph_of = [](const char* option, const std::string& value) {
    return run_troupe({"graph", "mlp", "--devices", "cpu:2", option, value})
      .out;
  };
  const auto given = graph_of("--feeds", feeds);
  CHECK(given.size() > 0);
  CHECK((given == graph_of("--batch", "1500")));
  CHECK((given != graph_of("--batch", "32")));
}

TEST_CASE("launches that complete late end the step when they complete") {
  const auto number_of_ends = [](const std::string& devices) {
    const auto wiring =
      json::parse(run_troupe({"graph", "mlp", "--devices", devices,
                              "--strategy", "all_reduce", "--wiring", "--json"})
                    .out);
    return std::ranges::count_if(wiring["handles"], [](const json& handle) {
      return handle["ends_step"].get<bool>();
    });
  };
  CHECK(number_of_ends("sim:2") > number_of_ends("cpu:2"));
}

TEST_CASE("the wiring tells of each handle whom it waits for") {
  const auto result = run_troupe({"graph", "mlp", "--wiring", "--json"});
  REQUIRE(lines_of(result.out).size() == 1);
  const auto wiring = json::parse(result.out);
  const auto handles = wiring["handles"].size();
  std::size_t sent = 0;
  std::size_t ends = 0;
  for (const json& handle : wiring["handles"]) {
    CHECK(keys(handle)
          == std::set<std::string>{"id", "in", "releases", "ends_step"});
    ends += handle["ends_step"].get<bool>();
    std::size_t told = 0;
    for (const json& edge : handle["in"]) {
      CHECK(keys(edge)
            == std::set<std::string>{"from", "distance", "stream", "sent"});
      CHECK((edge["from"].is_null() || edge["from"] < handles));
      told += edge["sent"].get<bool>();
    }
    CHECK(told > 0); // at least one message per step
    sent += told;
  }
  CHECK(ends > 0);
  CHECK(wiring["messages"] == sent);
  const auto text = run_troupe({"graph", "mlp", "--wiring"}).out;
  CHECK(lines_of(text).size() == handles + 1);
  CHECK(contains(text, "ends the step"));
}

TEST_CASE("dot output is a digraph") {
  const auto result = run_troupe({"graph", "mlp", "--format", "dot"});
  CHECK(result.code == 0);
  CHECK(result.out.starts_with("digraph"));
}

TEST_CASE("inspect tells feeds, parameters and ops of a net") {
  const json found = json::parse(run_troupe({"inspect", "mlp", "--json"}).out);
  REQUIRE(found["feeds"].size() == 2);
  CHECK(found["feeds"][1]["name"] == "label");
  CHECK(found["feeds"][1]["below"] == 10);
  CHECK(found["parameter_elements"]
        == 784 * 512 + 512 + 512 * 256 + 256 + 256 * 10 + 10);
  CHECK(found["op_types"]["mul"] == 3);
  const auto text = run_troupe({"inspect", "mlp"});
  CHECK(contains(text.out, "535818 elements in parameters"));
}

TEST_CASE("doctor names cores, memory, devices and libraries") {
  const auto result = run_troupe({"doctor", "--json"});
  REQUIRE(result.code == 0);
  const json found = json::parse(result.out);
  CHECK(found["cores"].get<int>() >= 1);
  CHECK(found["memory_bytes"].get<double>() > 1e8);
  CHECK(found["devices"][0] == "cpu");
  for (const char* library :
       {"CAF", "oneDNN", "OpenBLAS", "OpenSSL", "protobuf"})
    CHECK(found["libraries"].contains(library));
  CHECK(contains(run_troupe({"doctor"}).out, "oneDNN"));
}
TEST_CASE("the graph of a job names handles as --place does") {
  const temporary_folder folder;
  const words job{"graph", "mlp", "--nodes", "2"};
  const auto before = run_troupe(job);
  REQUIRE(before.code == 0);
  std::string moved; // a name
  const json named = json::parse(before.out);
  for (const json& handle : named["handles"]) {
    CHECK(handle["type"] != "send");
    if (handle["type"] == "softmax_with_cross_entropy"
        && handle["device"] == "cpu:1")
      moved = handle["name"];
  }
  REQUIRE_FALSE(moved.empty());
  write_bytes(folder / "places.txt", moved + " 0\n");
  const auto after = run_troupe(job + words{"--place", folder / "places.txt"});
  REQUIRE(after.code == 0);
  int transfers = 0, here = 0, there = 0;
  const json placed = json::parse(after.out);
  for (const json& handle : placed["handles"]) {
    transfers += handle["type"] == "send";
    if (handle["type"] == "softmax_with_cross_entropy")
      ++(handle["device"] == "cpu:0" ? here : there);
  }
  CHECK(here == 2);
  CHECK(there == 0);
  CHECK(transfers >= 2);
}

} // TEST_SUITE("apps.graph")
