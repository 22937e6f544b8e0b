// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/program_source.hpp>
#include <troupe/apps/usage_error.hpp>
#include <troupe/base/error.hpp>
#include <troupe/kernels/precision.hpp>
#include <troupe/training/data/batch_source.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace troupe::apps {

/// Which network to run, and where: options that train, eval and graph share.
struct network_options {
  std::string program; ///< a program folder or the name of a net
  std::string loss;
  std::string devices = "cpu";
  std::string sync = "event";
  bool no_capture = false;
  std::string strategy; ///< empty: not given
  std::string gradient_scale = "coeff";
  bool sync_batch_norm = false;
  std::string precision = "fp32";
  bool no_winograd = false;
  int threads = 0;
};

/// The argument PROGRAM|NET and `--loss`.
void add_program_argument(CLI::App& command, network_options& options);
void add_loss_option(CLI::App& command, network_options& options);
void add_device_options(CLI::App& command, network_options& options);
void add_strategy_options(CLI::App& command, network_options& options);
void add_precision_option(CLI::App& command, network_options& options);

/// The number format that `--precision` names.
precision factors_of(const network_options& options);

/// Parses the text options. Throws usage_error.
executor_options make_executor_options(const network_options& options);

/// For batches that do not come from `--feeds`: throws usage_error if the
/// gradient of the loss must be fed, because such batches do not contain it.
void refuse_custom_gradient(const network_options& options,
                            const program_bundle& bundle);
/// The same for commands that generate all their batches.
void refuse_custom_gradient_of_bench(const network_options& options,
                                     const program_bundle& bundle);

/// Where batches come from.
struct data_options {
  std::string feeds; ///< .npz file
  std::string data;  ///< IDX folder, .csv or .txt
  bool synthetic = false;
  /// 0: the program's own batch size, or 32 if it has none.
  std::int64_t batch = 0;
};

void add_data_options(CLI::App& command, data_options& options);

/// Samples per step of a run.
std::int64_t choose_batch(const data_options& options,
                          const program_bundle& bundle);

/// The source of `--feeds`. Throws usage_error if `--batch` contradicts it.
std::unique_ptr<batch_source> open_feeds(const data_options& options,
                                         std::span<const feed_info> feeds,
                                         arena& memory, batch_share share = {});

/// Adds an option that can be given several times. All its values are used, in
/// the given order; other options use only the last value.
/// @param values holds the default, which the first given value replaces
CLI::Option* add_repeatable_option(CLI::App& command, const char* name,
                                   std::vector<std::string>& values,
                                   const std::string& help);
/// The same for comma-separated lists, which are joined to one list.
CLI::Option* add_list_option(CLI::App& command, const char* name,
                             std::string& list, const std::string& help);

/// The comma-separated parts of `text`, including empty ones.
std::vector<std::string> split_list(const std::string& text);
/// The comma-separated names in `text`, without duplicates.
std::vector<std::string> split_names(const std::string& text);
/// The same, but throws usage_error if a name occurs twice.
std::vector<std::string> distinct_names(const std::string& text,
                                        const char* option);

/// True if a word that can name a file or something else names a file or a
/// folder: it contains a `/` or a `.`, or a file or folder of that name exists.
/// Throws as `input_type` does.
bool names_file(const std::string& word);

/// Adds `--json` and `--help` with an example.
void add_output_options(CLI::App& command, bool& json, const char* example);

/// Parses the value of an option. An error is a wrong command line and names
/// the option.
template <class Parse>
auto parse_value(const std::string& option, const std::string& value,
                 Parse parse) {
  try {
    return parse(value);
  } catch (const error& failure) {
    throw usage_error(option + ": " + failure.what());
  }
}

} // namespace troupe::apps
