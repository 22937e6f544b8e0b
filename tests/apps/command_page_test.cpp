// SPDX-License-Identifier: Apache-2.0
// docs/command-line.md must name the options of all commands and the keys of
// their results.
#include "apps/command_runner.hpp"

#include <support/files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cctype>
#include <set>
#include <string>
#include <vector>

using namespace troupe::test;

TEST_SUITE("apps.command_page") {

namespace {

using json = nlohmann::json;
const std::string digits = TROUPE_DATA "/digits";

std::string page() {
  return read_bytes(TROUPE_COMMAND_PAGE);
}

/// The part of `text` from `begin` to the next `end`, or to the end of `text`.
std::string part(const std::string& text, const std::string& begin,
                 const std::string& end) {
  const auto at = text.find(begin);
  REQUIRE(at != std::string::npos);
  const auto stop = text.find(end, at + begin.size());
  return text.substr(at, stop == std::string::npos ? stop : stop - at);
}

/// The section of the page about a command: "train", "bench train" or "trace
/// diff".
std::string section(const std::string& command) {
  if (command.starts_with("trace "))
    return part(part(page(), "\n## trace\n", "\n## "), "\n`troupe " + command,
                "\n`troupe trace ");
  if (!command.starts_with("bench "))
    return part(page(), "\n## " + command + "\n", "\n## ");
  const auto bench = part(page(), "\n## bench\n", "\n## ");
  return bench.substr(0, bench.find("`troupe bench train"))
         + part(bench, "`troupe " + command, "`troupe bench ");
}

bool is_part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'
         || c == '_';
}

/// True if the text contains the name, and not only as part of a longer one.
bool names(const std::string& text, const std::string& name) {
  for (auto at = text.find(name); at != std::string::npos;
       at = text.find(name, at + 1)) {
    const auto end = at + name.size();
    if ((at == 0 || !is_part_of_name(text[at - 1]))
        && (end == text.size() || !is_part_of_name(text[end])))
      return true;
  }
  return false;
}

/// The options that `--help` of a command lists.
std::set<std::string> options_of(const words& command) {
  auto asked = command;
  asked.emplace_back("--help");
  std::set<std::string> found;
  for (const auto& text : lines_of(run_troupe(asked).out))
    if (text.starts_with("  --"))
      found.insert(text.substr(2, text.find(' ', 2) - 2));
  return found;
}

// Objects whose keys are names of ops or libraries.
const std::set<std::string> tables{"op_types", "libraries", "unsupported_ops",
                                   "unsupported_startup_ops"};

void collect_keys(const json& value, std::set<std::string>& keys) {
  for (const auto& [key, inner] : value.items()) {
    if (value.is_object())
      keys.insert(key);
    if (key == "ops" && inner.is_object()) // its keys are op types
      collect_keys(*inner.begin(), keys);
    else if (inner.is_structured() && !tables.contains(key))
      collect_keys(inner, keys);
  }
}

std::set<std::string> keys_of(words command) {
  command.emplace_back("--json");
  const auto result = run_troupe(command);
  INFO(result.err);
  REQUIRE(result.code == 0);
  std::set<std::string> keys;
  for (const auto& text : lines_of(result.out))
    collect_keys(json::parse(text), keys);
  return keys;
}

} // namespace

TEST_CASE("every option of every command is described") {
  // These mean the same in all commands as in train.
  const std::set<std::string> shared{
    "--devices",    "--threads",        "--loss",  "--memory-limit",
    "--strategy",   "--gradient-scale", "--sync",  "--sync-batch-norm",
    "--precision",  "--batch",          "--fetch", "--seed",
    "--accumulate", "--no-capture"};
  const auto train = section("train");
  for (const auto& option : shared) {
    CAPTURE(option);
    CHECK(names(train, option));
  }
  for (const words& command : {words{"train"},
                               {"eval"},
                               {"graph"},
                               {"inspect"},
                               {"doctor"},
                               {"bench", "train"},
                               {"bench", "tasks"},
                               {"bench", "schedule"},
                               {"bench", "steps"},
                               {"bench", "latency"},
                               {"bench", "comm"},
                               {"launch"},
                               {"dashboard"},
                               {"trace", "summary"},
                               {"trace", "critical-path"},
                               {"trace", "costs"},
                               {"trace", "diff"},
                               {"trace", "export"},
                               {"trace", "report"},
                               {"trace", "start"},
                               {"trace", "stop"}}) {
    const auto name =
      command.size() == 1 ? command[0] : command[0] + " " + command[1];
    const auto text = section(name);
    const auto options = options_of(command);
    CHECK(options.contains("--json") == (name != "launch"));
    for (const auto& option : options)
      if (!shared.contains(option) && option != "--json") {
        CAPTURE(name);
        CAPTURE(option);
        CHECK(names(text, option));
      }
  }
}

TEST_CASE("every key of an answer in JSON is described") {
  const auto described = [](const std::string& command, const words& more) {
    CAPTURE(command);
    const auto text = section(command);
    words all{command};
    if (command.starts_with("bench ") || command.starts_with("trace "))
      all = {command.substr(0, 5), command.substr(6)};
    for (const auto& key : keys_of(all + more)) {
      CAPTURE(key);
      CHECK((names(text, "`" + key + "`") || names(text, "\"" + key + "\"")));
    }
  };
  const temporary_folder folder;
  const std::string saved = folder / "saved";
  described("train", {"digits", "--data", digits, "--steps", "3", "--threads",
                      "1", "--profile", "--save", saved});
  described("eval", {saved, "--params", saved, "--data", digits});
  described("inspect", {"mlp"});
  described("doctor", {});
  described("graph", {"mlp"});
  described("graph", {"mlp", "--wiring"});
  const std::string trace = folder / "a.trt";
  REQUIRE(run_troupe(
            {"train", "mlp", "--synthetic", "--steps", "4", "--trace", trace})
            .code
          == 0);
  described("trace summary", {trace});
  described("trace critical-path", {trace, "--what-if", "mul=x2"});
  described("trace costs", {trace});
  described("trace diff", {trace, trace});
  described("trace report", {trace, "--out", folder / "a.html"});
  described("trace export",
            {trace, "--format", "csv", "--out", folder / "a.csv"});
  described("bench train", {"mlp", "--steps", "1", "--warm-up", "0"});
  described("bench comm", {"--bytes", "4", "--rounds", "1"});
  const words quick{"--repeat", "1", "--sample-ms", "0"};
  described("bench steps", words{"mlp", "--batch", "2"} + quick);
  described("bench schedule", words{"mlp", "--level", "ops"} + quick);
  described("bench schedule",
            words{"mlp", "--delay", "mul=1us", "--pending", "1"} + quick);
  described("bench schedule",
            words{"mlp", "--late", "--remote", "1", "--threads", "1"} + quick);
  const words small{"--width", "2", "--steps", "16"};
  described("bench tasks", words{"--check"} + small + quick);
  described("bench tasks", words{"--by-size"} + small + quick);
  described("bench tasks", words{"--metg"} + small + quick);
}

} // TEST_SUITE("apps.command_page")
