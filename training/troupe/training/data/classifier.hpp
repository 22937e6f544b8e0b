// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// The variables that hold a program's classification of samples.
struct classifier {
  std::string scores; ///< variable [..., classes]; the largest score wins
  std::string label;  ///< feed of class numbers, one per row of scores
  std::int64_t ignored = -100; ///< label of samples that do not count
  /// The variable to ask of a predictor, which has no labels: the scores, or
  /// their logits if the loss computes the scores itself. The largest wins.
  std::string logits = {};
};

/// Finds the cross entropy whose labels are fed; empty if the program has none.
std::optional<classifier> find_classifier(const graph::program& p);

/// Number of correct answers and of all answers.
struct hits {
  std::int64_t correct = 0;
  std::int64_t total = 0;

  /// Share of correct answers.
  double accuracy() const {
    return static_cast<double>(correct) / static_cast<double>(total);
  }
};

/// Compares scores (float32, plain) with labels (int64). Rows with the label
/// `ignored` do not count. Of equal scores the first wins. Throws
/// error(shape_mismatch) if there is not one label per row.
hits count_hits(const tensor& scores, const tensor& labels,
                std::int64_t ignored = -100);

} // namespace troupe
