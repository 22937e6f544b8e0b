// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/program_source.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/results/fetch_file.hpp>
#include <troupe/apps/results/loss_curve.hpp>
#include <troupe/apps/results/metrics_file.hpp>
#include <troupe/apps/training/train_run.hpp>
#include <troupe/base/files/atomic_file.hpp>

#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// Those of `names` that are persistable: they have the same value on all
/// devices.
std::vector<std::string> persistable(const program_bundle& bundle,
                                     const std::vector<std::string>& names);

/// Throws usage_error if two outputs have the same place, or one that is read.
void require_output_places(const train_options& options);

/// The same options, but nothing is written: only the first rank of a job
/// writes files.
train_options without_files(train_options options);

/// All files that a run writes. They are opened before the first step, so that
/// a path that cannot be written is reported before the training.
class run_outputs {
public:
  /// @param first_step,line_before of a run that continues another one, as for
  ///   `metrics_file`
  run_outputs(const train_options& options, const program_bundle& bundle,
              std::uint64_t first_step = 0,
              const std::string& line_before = {});

  /// Adds a line of metrics. If it cannot be written, training continues
  /// without further lines, and `require_metrics` throws at the end.
  void add(const step_metrics& metrics, progress& shown);
  /// Adds a line of metrics that another rank has made.
  void add_line(const std::string& line);
  /// Throws, at the end, if metrics could not be written.
  void require_metrics() const;

  /// Keeps what a step has fetched.
  void add(const step_result& result);

  /// Writes the loss curve and the fetched variables.
  void finish(const program_bundle& bundle, const loss_history& history,
              const train_options& options, arena& memory);

private:
  std::optional<metrics_file> metrics_;
  std::optional<std::string> lost_; // the reason, if lines are missing
  std::optional<atomic_file> curve_;
  std::optional<fetch_file> fetched_;
};

} // namespace troupe::apps
