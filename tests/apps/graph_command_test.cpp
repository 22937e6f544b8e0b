// SPDX-License-Identifier: Apache-2.0
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>

using namespace troupe::test;

namespace {

using json = nlohmann::json;

std::set<std::string> keys(const json& object) {
  std::set<std::string> found;
  for (auto& [key, value] : object.items())
    found.insert(key);
  return found;
}

} // namespace

TEST_SUITE("apps.graph") {
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
    if (edge["kind"] == "data")
      CHECK(kinds[edge["from"]] != kinds[edge["to"]]);
  }
}

TEST_CASE("strategies differ in their collectives") {
  const auto types = [](const char* strategy, const char* devices = "cpu:2") {
    std::set<std::string> found;
    const auto result = run_troupe(
      {"graph", "mlp", "--devices", devices, "--strategy", strategy});
    const json graph = json::parse(result.out);
    for (const json& handle : graph["handles"])
      found.insert(handle["type"].get<std::string>());
    return found;
  };
  CHECK(types("all_reduce").contains("all_reduce"));
  CHECK(types("reduce").contains("reduce"));
  CHECK_FALSE(types("reduce").contains("broadcast")); // they share parameters
  CHECK(types("reduce", "sim:2").contains("broadcast"));
  CHECK_FALSE(types("none").contains("all_reduce"));
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
  for (const char* library : {"CAF", "oneDNN", "OpenBLAS", "protobuf"})
    CHECK(found["libraries"].contains(library));
  CHECK(contains(run_troupe({"doctor"}).out, "oneDNN"));
}
} // TEST_SUITE("apps.graph")
