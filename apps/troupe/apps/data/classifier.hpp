// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::apps {

/// Where a program says which class it takes a sample for.
struct classifier {
  std::string scores; ///< variable [..., classes]; the largest score wins
  std::string label;  ///< feed of class numbers, one per row of scores
  std::int64_t ignored = -100; ///< a label that stands for none
};

/// Finds the cross entropy of a program whose labels are fed; nothing if it
/// has none.
std::optional<classifier> find_classifier(const graph::program& p);

/// Right answers out of all.
struct hits {
  std::int64_t correct = 0;
  std::int64_t total = 0;

  double accuracy() const {
    return static_cast<double>(correct) / static_cast<double>(total);
  }
};

/// Compares scores (float32, plain) with labels (int64), but for those that are
/// `ignored`. Of equal scores the first wins. Throws error(shape_mismatch) if
/// there is not one label per row.
hits count_hits(const tensor& scores, const tensor& labels,
                std::int64_t ignored = -100);

} // namespace troupe::apps
