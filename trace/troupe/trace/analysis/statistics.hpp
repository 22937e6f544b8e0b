// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace troupe::trace {

/// The mean of `values`; 0 if there are none.
double mean(std::span<const double> values);

/// The p-quantile of `values`, 0 <= p <= 1, interpolated between neighbours; 0
/// if there are none.
double quantile(std::vector<double> values, double p);

/// Median and quartiles of a number of values.
struct spread {
  double quarter = 0; ///< a quarter of the values is less
  double median = 0;
  double three_quarters = 0; ///< a quarter of the values is more
};

/// All 0 without values.
spread spread_of(std::vector<double> values);

/// The two-sided p-value of the Mann-Whitney rank test, by its normal
/// approximation with a correction for ties: how likely two samples of the same
/// distribution differ as much. 1 if one of them is empty.
double rank_test(std::span<const double> a, std::span<const double> b);

} // namespace troupe::trace
