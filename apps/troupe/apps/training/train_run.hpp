// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/common_options.hpp>
#include <troupe/apps/dashboard/dashboard_options.hpp>
#include <troupe/apps/rank_part.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::apps {

/// The options of `troupe train`. Empty: not given.
struct train_options {
  network_options network;
  data_options data;
  rank_options ranks;
  std::uint64_t steps = 0;      ///< 0: `epochs` counts
  std::uint64_t epochs = 0;     ///< 0: one epoch
  std::uint32_t accumulate = 1; ///< steps per update
  std::string params;
  std::string save;                      ///< folder
  std::string metrics;                   ///< .jsonl
  std::string loss_curve;                ///< .svg
  std::string snapshots;                 ///< folder
  std::uint64_t snapshot_every = 0;      ///< steps
  std::uint64_t keep = 2;                ///< snapshots
  std::string resume;                    ///< "auto", or empty
  std::uint64_t verify_every = 0;        ///< steps; 0: never
  std::vector<std::string> slow;         ///< NAME=TIME or NAME=xFACTOR
  std::string place;                     ///< file of patterns and ranks
  double watchdog = 60;                  ///< seconds; 0: none
  std::string flight_recorder = "steps"; ///< level
  std::string trace;                     ///< .trt
  std::string trace_level;               ///< empty: messages
  dashboard_options dashboard;
  std::string fetch;     ///< names with commas
  std::string fetch_out; ///< .npz
  std::uint64_t seed = 0;
  bool deterministic = false; ///< no trial chooses the devices
  bool check_nan = false;
  bool dry_run = false;
  bool profile = false;
  bool json = false;
};

/// Adds the options of `troupe train`, except `--json` and those of snapshots
/// and checks.
void add_train_options(CLI::App& command, train_options& options);

/// Trains. Progress goes to stderr, results go to stdout. Returns the exit
/// code; throws usage_error and error. Ctrl-C cancels the steps in flight: the
/// exit code is 1 and nothing is saved.
int run_train(const train_options& options);

} // namespace troupe::apps
