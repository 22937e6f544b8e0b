// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/common_options.hpp>

#include <cstdint>
#include <string>

namespace troupe::apps {

/// The options of `troupe train`; empty names ask for nothing.
struct train_options {
  network_options network;
  data_options data;
  std::uint64_t steps = 0;  ///< 0: counted in epochs
  std::uint64_t epochs = 0; ///< 0: one
  std::string params;
  std::string save;       ///< folder
  std::string metrics;    ///< .jsonl
  std::string loss_curve; ///< .svg
  std::string fetch;      ///< names with commas
  std::string fetch_out;  ///< .npz
  std::uint64_t seed = 0;
  bool deterministic = false;
  bool check_nan = false;
  bool dry_run = false;
  bool profile = false;
  bool json = false;
};

/// Trains, tells how it goes on stderr and what came out on stdout. Returns
/// the exit code; throws usage_error and error. Ctrl-C cancels the
/// steps under way: exit code 1, nothing saved.
int run_train(const train_options& options);

} // namespace troupe::apps
