// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace troupe::apps {

/// What was measured of one thing, a few times.
class samples {
public:
  void add(double value) { values_.push_back(value); }
  /// The p-quantile, 0 <= p <= 1; there is one sample at least.
  double quantile(double p) const;
  double median() const { return quantile(0.5); }
  double least() const { return quantile(0); }

private:
  std::vector<double> values_;
};

} // namespace troupe::apps
