// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace troupe::apps {

/// Repeated measurements of one quantity.
class samples {
public:
  void add(double value) { values_.push_back(value); }
  /// The p-quantile, 0 <= p <= 1. There must be at least one sample.
  double quantile(double p) const;
  double median() const { return quantile(0.5); }
  double least() const { return quantile(0); }

private:
  std::vector<double> values_;
};

} // namespace troupe::apps
