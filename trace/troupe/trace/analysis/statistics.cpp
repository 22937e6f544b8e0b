// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/statistics.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <utility>

namespace troupe::trace {

namespace {

double quantile_of_sorted(const std::vector<double>& values, double p) {
  if (values.empty())
    return 0;
  const auto place = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, values.size() - 1);
  const auto part = place - static_cast<double>(below);
  return values[below] + part * (values[above] - values[below]);
}

} // namespace

double mean(std::span<const double> values) {
  if (values.empty())
    return 0;
  return std::accumulate(values.begin(), values.end(), 0.0)
         / static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double p) {
  std::ranges::sort(values);
  return quantile_of_sorted(values, p);
}

spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {quantile_of_sorted(values, 0.25), quantile_of_sorted(values, 0.5),
          quantile_of_sorted(values, 0.75)};
}

double rank_test(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty())
    return 1;
  std::vector<std::pair<double, bool>> all; // a value, and whether it is of `a`
  for (auto value : a)
    all.emplace_back(value, true);
  for (auto value : b)
    all.emplace_back(value, false);
  std::ranges::sort(all);
  double ranks_of_a = 0, ties = 0;
  for (std::size_t begin = 0; begin < all.size();) {
    auto end = begin;
    while (end < all.size() && all[end].first == all[begin].first)
      ++end;
    const auto count = static_cast<double>(end - begin);
    const auto rank = static_cast<double>(begin + end + 1) / 2;
    for (auto i = begin; i < end; ++i)
      if (all[i].second)
        ranks_of_a += rank;
    ties += count * (count * count - 1);
    begin = end;
  }
  const auto n_a = static_cast<double>(a.size());
  const auto n_b = static_cast<double>(b.size());
  const auto n = n_a + n_b;
  const auto u = ranks_of_a - n_a * (n_a + 1) / 2;
  const auto variance = n_a * n_b / 12 * (n + 1 - ties / (n * (n - 1)));
  if (!(variance > 0))
    return 1; // all values are equal
  const auto distance = std::max(0.0, std::abs(u - n_a * n_b / 2) - 0.5);
  return std::erfc(distance / std::sqrt(variance) / std::numbers::sqrt2);
}

} // namespace troupe::trace
