// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::apps {

/// Times of one thing, in nanoseconds each.
class samples {
public:
  void add(double ns) { ns_.push_back(ns); }
  /// The p-quantile, 0 <= p <= 1; there is one sample at least.
  double quantile(double p) const;
  double median() const { return quantile(0.5); }
  double least() const { return quantile(0); }

private:
  std::vector<double> ns_;
};

/// Bytes of heap in use.
double heap_bytes();

/// Nanoseconds of one call of `work`, which is called until `at_least_ns` have
/// gone by.
double time_of(const std::function<void()>& work, double at_least_ns);

} // namespace troupe::apps
