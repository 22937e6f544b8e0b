// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/data/batch_source.hpp>
#include <troupe/apps/program_source.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace troupe::apps {

/// Which network, where it runs: what train, eval and graph share.
struct network_options {
  std::string program; ///< a program folder or the name of a net
  std::string loss;
  std::string devices = "cpu";
  std::string strategy; ///< empty: not given
  std::string gradient_scale = "coeff";
  bool sync_batch_norm = false;
  std::string precision = "fp32";
  int threads = 0;
};

/// The program and `--loss`.
void add_program_argument(CLI::App& command, network_options& options);
void add_loss_option(CLI::App& command, network_options& options);
void add_device_options(CLI::App& command, network_options& options);
void add_strategy_options(CLI::App& command, network_options& options);
void add_precision_option(CLI::App& command, network_options& options);

/// Parses the text options. Throws usage_error.
executor_options make_executor_options(const network_options& options);

/// For batches that are no arrays of the user's: throws usage_error if the
/// gradient of the loss is to be fed, which they do not hold.
void refuse_custom_gradient(const network_options& options,
                            const program_bundle& bundle);
/// The same for commands that make all their batches.
void refuse_custom_gradient_of_bench(const network_options& options,
                                     const program_bundle& bundle);

/// Workers of the system that such an executor makes: one per core at most.
int workers_of(const executor_options& options);

/// Where batches come from.
struct data_options {
  std::string feeds; ///< .npz file
  std::string data;  ///< IDX folder, .csv or .txt
  bool synthetic = false;
  std::int64_t batch = 0; ///< 0: what the program was made for, else 32
};

void add_data_options(CLI::App& command, data_options& options);

/// Samples per step of a run.
std::int64_t choose_batch(const data_options& options,
                          const program_bundle& bundle);

/// The source of `--feeds`. Throws usage_error if `--batch` contradicts it.
std::unique_ptr<batch_source> open_feeds(const data_options& options,
                                         std::span<const feed_info> feeds,
                                         arena& memory);

/// Adds an option that may be given several times: its values are all taken, in
/// their order, whereas of other options the last value counts.
/// @param values both its default, which is replaced, and its values
CLI::Option* add_repeatable_option(CLI::App& command, const char* name,
                                   std::vector<std::string>& values,
                                   const std::string& help);
/// The same of lists with commas, which become one.
CLI::Option* add_list_option(CLI::App& command, const char* name,
                             std::string& list, const std::string& help);

/// What stands in `text` before, between and behind commas.
std::vector<std::string> split_list(const std::string& text);
/// What `text` names with commas between, each once.
std::vector<std::string> split_names(const std::string& text);
/// The same where one that is there twice would be asked for in vain: throws
/// usage_error.
std::vector<std::string> distinct_names(const std::string& text,
                                        const char* option);

/// Adds `--json` and `--help` with an example.
void add_output_options(CLI::App& command, bool& json, const char* example);

} // namespace troupe::apps
