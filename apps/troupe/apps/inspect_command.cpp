// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/apps/results/json_text.hpp>
#include <troupe/apps/subcommands.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/quoted_name.hpp>
#include <troupe/graph/sub_blocks.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/io/npz.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace troupe::apps {

namespace {

using json = nlohmann::ordered_json;

json describe(const std::string& name, dtype type, const shape& dims) {
  json out;
  out["name"] = name;
  out["dtype"] = to_string(type);
  out["shape"] = std::vector<std::int64_t>(dims.begin(), dims.end());
  return out;
}

json describe_feed(const feed_info& feed) {
  json out = describe(feed.name, feed.type, feed.dims);
  out["below"] = nullptr;
  if (feed.below)
    out["below"] = *feed.below;
  return out;
}

json describe_program(const program_bundle& bundle,
                      std::span<const device_id> devices) {
  const graph::block& main = bundle.main.main();
  json out;
  out["name"] = bundle.name;
  out["loss"] = nullptr;
  if (!bundle.loss.empty())
    out["loss"] = bundle.loss;
  out["feeds"] = json::array();
  for (const feed_info& feed : bundle.feeds)
    out["feeds"].push_back(describe_feed(feed));
  std::int64_t elements = 0;
  out["parameters"] = json::array();
  for (auto& [name, var] : main.vars)
    if (var.is_parameter) {
      out["parameters"].push_back(describe(name, var.type, var.dims));
      elements += var.dims.numel();
    }
  out["parameter_elements"] = elements;
  out["variables"] = main.vars.size();
  out["ops"] = main.ops.size();
  graph::op_counts types;
  graph::for_each_op(bundle.main,
                     [&](const graph::op_desc& op) { ++types[op.type]; });
  out["op_types"] = types;
  const missing_ops missing = find_missing_ops(bundle, devices);
  out["unsupported_ops"] = missing.main;
  out["unsupported_startup_ops"] = missing.startup;
  return out;
}

json describe_arrays(const std::string& file) {
  arena memory(make_host_memory_source());
  json out;
  out["name"] = file;
  out["arrays"] = json::array();
  for (auto& [name, array] : read_npz(file, memory))
    out["arrays"].push_back(describe(name, array.type(), array.dims()));
  return out;
}

void print_table(const char* title, const json& rows) {
  if (rows.empty())
    return;
  std::printf("%s\n", title);
  for (const json& row : rows) {
    const auto name = one_line(row["name"].get<std::string>());
    const auto type = row["dtype"].get<std::string>();
    std::printf("  %-28s %-8s %s", name.c_str(), type.c_str(),
                row["shape"].dump().c_str());
    if (row.contains("below") && !row["below"].is_null())
      std::printf(" below %s", row["below"].dump().c_str());
    std::printf("\n");
  }
}

void print_counts(const json& counts) {
  for (auto& [type, count] : counts.items())
    std::printf("  %-28s %s\n", one_line(type).c_str(), count.dump().c_str());
}

void print_missing(const char* title, const json& counts) {
  if (counts.empty())
    return;
  std::printf("%s\n", title);
  print_counts(counts);
}

void print_program(const json& program) {
  std::printf("%s\n", one_line(program["name"].get<std::string>()).c_str());
  std::printf("loss %s\n", json_text(program["loss"]).c_str());
  print_table("feeds", program["feeds"]);
  print_table("parameters", program["parameters"]);
  std::printf("%s elements in parameters\n",
              program["parameter_elements"].dump().c_str());
  std::printf("%s variables, %s ops\n", program["variables"].dump().c_str(),
              program["ops"].dump().c_str());
  print_counts(program["op_types"]);
  print_missing("no kernels for these ops", program["unsupported_ops"]);
  print_missing("no kernels for these ops of the startup program",
                program["unsupported_startup_ops"]);
}

int run_inspect(const std::string& what, const std::string& loss,
                const std::string& devices, bool as_json) {
  const bool arrays = what.ends_with(".npz");
  if (arrays && !loss.empty())
    throw usage_error("--loss " + loss + ": an .npz file has no loss");
  const auto on = parse_value("--devices", devices, parse_devices);
  const json found = arrays ? describe_arrays(what)
                            : describe_program(load_program(what, loss), on);
  if (as_json)
    std::printf("%s\n", json_text(found).c_str());
  else if (arrays)
    print_table(one_line(what).c_str(), found["arrays"]);
  else
    print_program(found);
  return 0;
}

} // namespace

void add_inspect(CLI::App& app, action& chosen) {
  struct inspect_options {
    network_options network;
    std::string devices = "cpu";
    bool json = false;
  };
  auto options = std::make_shared<inspect_options>();
  auto& command = *app.add_subcommand(
    "inspect", "feeds, parameters and ops of a program, or the arrays of an "
               ".npz file");
  command
    .add_option(
      "PROGRAM|NET|F.npz", options->network.program,
      "a program folder, a .pdmodel file, a built-in net by name, or an .npz "
      "file")
    ->check(not_empty())
    ->required();
  add_loss_option(command, options->network);
  command
    .add_option(
      "--devices", options->devices,
      "lists the ops that have no kernel on these devices, which need "
      "not be there")
    ->check(not_empty())
    ->capture_default_str();
  add_output_options(command, options->json, "troupe inspect resnet18");
  command.callback([options, &chosen] {
    chosen = [options] {
      return run_inspect(options->network.program, options->network.loss,
                         options->devices, options->json);
    };
  });
}

} // namespace troupe::apps
