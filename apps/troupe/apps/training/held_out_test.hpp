// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/evaluation.hpp>
#include <troupe/apps/program_source.hpp>
#include <troupe/apps/progress.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/apps/stop_request.hpp>
#include <troupe/training/data/batch_source.hpp>

#include <optional>
#include <string>

namespace troupe::apps {

/// Evaluates each epoch of a training on held-out samples. Of several ranks,
/// the first does so, and all bring its parameters up to date.
class held_out_test {
public:
  /// @param samples null: there are none
  held_out_test(const program_bundle& bundle, batch_source* samples,
                const executor_options& training, const rank_part& part,
                const stop_request& stop);

  bool has_samples() const { return samples_ != nullptr; }

  /// Loss and accuracy with the current parameters, as text for the line of an
  /// epoch. A failure does not end the training: it is reported once here, and
  /// `at_end` throws if it happens again.
  std::string tell(executor& exe, progress& shown);

  /// Correct answers with the parameters after the last step.
  hits at_end(const scope& parameters) const;

private:
  evaluation run(const scope& parameters) const;

  const program_bundle& bundle_;
  batch_source* samples_;
  const rank_part& part_;
  const stop_request& stop_;
  executor_options one_device_;
  bool failed_ = false;
  std::optional<evaluation> last_;
};

} // namespace troupe::apps
