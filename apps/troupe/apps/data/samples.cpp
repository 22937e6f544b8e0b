// SPDX-License-Identifier: Apache-2.0
#include <troupe/apps/data/samples.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace troupe::apps {

double samples::quantile(double p) const {
  auto sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(p * last))];
}

} // namespace troupe::apps
