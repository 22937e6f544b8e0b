// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/cost_change.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/quoted_name.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace troupe::trace {

namespace {

[[noreturn]] void refuse_change(std::string_view entry) {
  throw error(errc::invalid_argument,
              quoted_name(entry)
                + ": must be TYPE=x0.5, TYPE=+2ms, TYPE=-2ms or TYPE=100us");
}

/// Larger ones are no question, and their sums would overflow.
constexpr double most_factor = 1e6, most_seconds = 1e6;

void require_at_most(double most, double value, const char* what,
                     std::string_view entry) {
  if (value > most)
    throw error(errc::invalid_argument,
                quoted_name(entry) + ": must be at most " + what);
}

/// A number that is not negative; what follows it goes to `rest`.
double read_number(std::string_view text, std::string_view& rest,
                   std::string_view entry) {
  double value = 0;
  const auto [end, failure] =
    std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || !std::isfinite(value) || text.starts_with('-'))
    refuse_change(entry);
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return value;
}

double read_time(std::string_view text, std::string_view entry) {
  constexpr std::array<std::pair<std::string_view, double>, 4> units{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  std::string_view unit;
  const auto number = read_number(text, unit, entry);
  for (const auto& [name, ns] : units)
    if (unit == name) {
      require_at_most(most_seconds * 1e9, number * ns, "1000000s", entry);
      return number * ns;
    }
  refuse_change(entry);
}

} // namespace

double cost_change::of(double ns) const {
  switch (how) {
  case kind::factor: return ns * value;
  case kind::added: return std::max(0.0, ns + value);
  case kind::fixed: return value;
  }
  return ns;
}

cost_change parse_cost_change(std::string_view entry) {
  const auto equals = entry.find('=');
  if (equals == entry.npos || equals == 0 || equals + 1 == entry.size())
    refuse_change(entry);
  cost_change change;
  change.ops = entry.substr(0, equals);
  const auto value = entry.substr(equals + 1);
  switch (value.front()) {
  case 'x': {
    std::string_view rest;
    change.value = read_number(value.substr(1), rest, entry);
    if (!rest.empty())
      refuse_change(entry);
    require_at_most(most_factor, change.value, "x1000000", entry);
    break;
  }
  case '+':
  case '-':
    change.how = cost_change::kind::added;
    change.value = read_time(value.substr(1), entry);
    if (value.front() == '-')
      change.value = -change.value;
    break;
  default:
    change.how = cost_change::kind::fixed;
    change.value = read_time(value, entry);
  }
  return change;
}

} // namespace troupe::trace
