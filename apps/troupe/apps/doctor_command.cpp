// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/machine.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/base/version.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace troupe::apps {

namespace {

void print_json(const machine_report& report) {
  nlohmann::ordered_json out;
  out["version"] = TROUPE_VERSION;
  out["cores"] = report.cores;
  out["processor"] = report.processor;
  out["instruction_sets"] = report.instruction_sets;
  out["memory_bytes"] = report.memory_bytes;
  out["available_bytes"] = report.available_bytes;
  out["devices"] = report.devices;
  for (auto& [library, version] : report.libraries)
    out["libraries"][library] = version;
  for (auto& [engine, text] : report.engines)
    out["engines"][engine] = text;
  out["advice"] = report.advice;
  std::printf("%s\n", out.dump().c_str());
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

void print_text(const machine_report& report) {
  constexpr double gib = 1024.0 * 1024 * 1024;
  const auto row = [](const char* name, const std::string& value) {
    std::printf("%-17s %s\n", name, value.c_str());
  };
  row("troupe", TROUPE_VERSION);
  row("processor", report.processor);
  row("cores", std::to_string(report.cores));
  row("instruction sets", joined(report.instruction_sets));
  std::printf("%-17s %.1f GiB, %.1f GiB available\n", "memory",
              static_cast<double>(report.memory_bytes) / gib,
              static_cast<double>(report.available_bytes) / gib);
  row("devices", joined(report.devices));
  for (auto& [library, version] : report.libraries)
    row(library.c_str(), version);
  for (auto& [engine, text] : report.engines)
    row(("engine " + engine).c_str(), text);
  for (const std::string& advice : report.advice)
    row("advice", advice);
}

int run_doctor(bool json) {
  const machine_report report = examine_machine();
  json ? print_json(report) : print_text(report);
  return 0;
}

} // namespace

void add_doctor(CLI::App& app, action& chosen) {
  auto json = std::make_shared<bool>(false);
  auto& command = *app.add_subcommand(
    "doctor", "what this machine and this build support, and what is missing");
  add_output_options(command, *json, "troupe doctor");
  command.callback(
    [json, &chosen] { chosen = [json] { return run_doctor(*json); }; });
}

} // namespace troupe::apps
