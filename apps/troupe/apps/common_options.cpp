// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/common_options.hpp>

#include <troupe/actors/backend/backend.hpp>
#include <troupe/apps/option_checks.hpp>
#include <troupe/base/files/input_file.hpp>
#include <troupe/kernels/kernel_options.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

namespace troupe::apps {

namespace {

/// The name of the loss gradient if it must be fed but the program has no such
/// feed; otherwise empty.
std::string unfed_gradient(const network_options& options,
                           const program_bundle& bundle) {
  auto gradient = graph::gradient_name(bundle.loss);
  return options.gradient_scale == "custom"
             && !find_feed(bundle.feeds, gradient)
           ? gradient
           : "";
}

/// Calls `take(value, is_first)` for each value.
CLI::Option*
add_collecting_option(CLI::App& command, const char* name,
                      std::function<void(const std::string&, bool)> take,
                      const std::string& help) {
  auto* option = command.add_option_function<std::string>(
    name, [](const auto&) {}, help);
  const auto is_first = std::make_shared<bool>(true); // CLI11 copies functions
  return option->each([take = std::move(take), is_first](std::string value) {
    take(value, std::exchange(*is_first, false));
  });
}

} // namespace

CLI::Option* add_repeatable_option(CLI::App& command, const char* name,
                                   std::vector<std::string>& values,
                                   const std::string& help) {
  return add_collecting_option(
    command, name,
    [&values](const std::string& value, bool is_first) {
      if (is_first)
        values.clear();
      values.push_back(value);
    },
    help);
}

CLI::Option* add_list_option(CLI::App& command, const char* name,
                             std::string& list, const std::string& help) {
  return add_collecting_option(
           command, name,
           [&list](const std::string& value, bool is_first) {
             list = is_first ? value : list + "," + value;
           },
           help)
    ->default_str(list);
}

void add_program_argument(CLI::App& command, network_options& options) {
  command
    .add_option("PROGRAM|NET", options.program,
                "a program folder, a .pdmodel file, or a built-in net by name")
    ->check(not_empty())
    ->required();
  add_loss_option(command, options);
}

void add_loss_option(CLI::App& command, network_options& options) {
  command
    .add_option("--loss", options.loss,
                "the loss variable (default: found in the program)")
    ->check(not_empty());
}

void add_device_options(CLI::App& command, network_options& options) {
  command
    .add_option("--devices", options.devices,
                "cpu, cpu:2 (two CPU devices), sim:2 (two simulated ones) or "
                "cuda:0,cuda:1 (two GPUs)")
    ->check(not_empty())
    ->capture_default_str();
  command
    .add_option("--sync", options.sync,
                "how streams of GPUs wait for each other: on the GPU (event), "
                "or the launching thread blocks (block)")
    ->check(not_empty())
    ->capture_default_str();
  command.add_flag("--no-capture", options.no_capture,
                   "launch the ops of each step on a GPU one by one");
  command
    .add_option_function<std::uint64_t>(
      "--memory-limit",
      [](const std::uint64_t& bytes) { set_host_memory_limit(bytes); },
      "maximum memory of tensors, such as 8GiB or 500MiB; MB and GB mean MiB "
      "and GiB (default: 15/16 of the machine's or the container's memory)")
    ->transform(memory_size());
}

void add_strategy_options(CLI::App& command, network_options& options) {
  command
    .add_option(
      "--strategy", options.strategy,
      "how gradients are merged: all_reduce, reduce, replicate, none "
      "(default: all_reduce; reduce when training on several CPU devices)")
    ->check(not_empty());
  command
    .add_option("--gradient-scale", options.gradient_scale,
                "initial loss gradient of each device: its share of the batch "
                "(coeff), 1 (one), or fed (custom)")
    ->check(not_empty())
    ->capture_default_str();
  command.add_flag("--sync-batch-norm", options.sync_batch_norm,
                   "compute statistics of batch norms over all devices");
}

void add_precision_option(CLI::App& command, network_options& options) {
  command
    .add_option("--precision", options.precision,
                "number format of matrix-product inputs and of images between "
                "convolutions: fp32 or bf16; sums and parameters stay float32")
    ->check(not_empty())
    ->check(CLI::IsMember({"fp32", "bf16"}))
    ->capture_default_str();
}

void add_data_options(CLI::App& command, data_options& options) {
  auto* feeds = command
                  .add_option("--feeds", options.feeds,
                              ".npz file with an array per feed; axis 0 "
                              "counts steps")
                  ->check(not_empty());
  auto* data = command
                 .add_option("--data", options.data,
                             "folder of IDX files (MNIST), a .csv or .txt file")
                 ->check(not_empty());
  command
    .add_option("--batch", options.batch, "samples per step, over all devices")
    ->check(batch_size());
  feeds->excludes(data);
}

void add_output_options(CLI::App& command, bool& json, const char* example) {
  command.add_flag("--json", json, "one JSON object per result line on stdout");
  command.footer(std::string("Example:\n  ") + example);
}

precision factors_of(const network_options& options) {
  return options.precision == "bf16" ? precision::bfloat16 : precision::float32;
}

executor_options make_executor_options(const network_options& options) {
  executor_options made;
  made.devices = parse_value("--devices", options.devices, parse_devices);
  made.waits_by = parse_value("--sync", options.sync, parse_wait_mode);
  made.capture = !options.no_capture;
  if (!options.strategy.empty())
    made.strategy =
      parse_value("--strategy", options.strategy, graph::parse_merge_strategy);
  made.scale = parse_value("--gradient-scale", options.gradient_scale,
                           graph::parse_gradient_scale);
  if (options.sync_batch_norm && made.strategy == graph::merge_strategy::none)
    throw usage_error("--sync-batch-norm cannot be used with --strategy none");
  made.lowering.sync_batch_norm = options.sync_batch_norm;
  // Nothing reads the parameters during training.
  made.lowering.kernel_layouts = true;
  made.threads = options.threads;
  const auto factors = factors_of(options);
  if (options.no_winograd || factors != precision::float32)
    made.kernels = std::make_shared<kernel_table>(kernels_for(
      made.devices, {.winograd = !options.no_winograd, .factors = factors}));
  return made;
}

void refuse_custom_gradient(const network_options& options,
                            const program_bundle& bundle) {
  if (const auto gradient = unfed_gradient(options, bundle); !gradient.empty())
    throw usage_error("--gradient-scale custom needs --feeds with an array "
                      + gradient);
}

void refuse_custom_gradient_of_bench(const network_options& options,
                                     const program_bundle& bundle) {
  if (const auto gradient = unfed_gradient(options, bundle); !gradient.empty())
    throw usage_error("--gradient-scale custom: bench makes no " + gradient
                      + " to feed; it measures coeff and one");
}

std::int64_t choose_batch(const data_options& options,
                          const program_bundle& bundle) {
  if (options.batch > 0)
    return options.batch;
  return bundle.batch > 0 ? bundle.batch : 32;
}

std::unique_ptr<batch_source> open_feeds(const data_options& options,
                                         std::span<const feed_info> feeds,
                                         arena& memory, batch_share share) {
  auto source = make_npz_source(options.feeds, feeds, memory, share);
  const std::int64_t held = source->batch_samples(0);
  if (options.batch > 0 && options.batch != held)
    throw usage_error("--batch " + std::to_string(options.batch) + ", but "
                      + options.feeds + " has " + std::to_string(held)
                      + " samples per step");
  return source;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (auto& name : split_list(text))
    if (!name.empty() && std::ranges::find(names, name) == names.end())
      names.push_back(std::move(name));
  return names;
}

std::vector<std::string> distinct_names(const std::string& text,
                                        const char* option) {
  auto names = split_list(text);
  for (auto name = names.begin(); name != names.end(); ++name)
    if (std::find(names.begin(), name, *name) != name)
      throw usage_error(std::string{option} + ": " + *name + " is there twice");
  return names;
}

bool names_file(const std::string& word) {
  return word.find_first_of("/.") != word.npos
         || input_type(word) != std::filesystem::file_type::not_found;
}

} // namespace troupe::apps
