// SPDX-License-Identifier: Apache-2.0
#include <support/op_compare.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace troupe::test {

namespace {

std::string kind_difference(const op_value& a, const op_value& e) {
  if (a.is_rows() != e.is_rows())
    return a.is_rows() ? "selected rows instead of a tensor"
                       : "a tensor instead of selected rows";
  if (a.type != e.type)
    return "dtype " + std::string(to_string(a.type)) + " instead of "
           + std::string(to_string(e.type));
  if (a.height != e.height)
    return "height " + std::to_string(a.height) + " instead of "
           + std::to_string(e.height);
  return {};
}

bool is_close(double actual, double expected, double allowed) {
  if (std::isnan(expected) || std::isinf(expected))
    return std::isnan(expected) ? std::isnan(actual) : actual == expected;
  return std::abs(actual - expected) <= allowed;
}

std::string element_difference(const op_value& a, const op_value& e,
                               double allowed) {
  for (std::size_t i = 0; i < e.elements.size(); ++i)
    if (!is_close(a.elements[i], e.elements[i], allowed)) {
      std::ostringstream text;
      text.precision(9);
      text << "element " << i << " of " << to_string(e.dims) << " is "
           << a.elements[i] << " instead of " << e.elements[i]
           << ", allowed is a difference of " << allowed;
      return text.str();
    }
  return {};
}

} // namespace

double magnitude(const op_value& value) {
  double most = 0;
  for (double e : value.elements)
    if (std::isfinite(e))
      most = std::max(most, std::abs(e));
  return most;
}

std::string difference(const op_value& actual, const op_value& expected,
                       double tolerance) {
  if (auto kind = kind_difference(actual, expected); !kind.empty())
    return kind;
  const auto a = densify(actual), e = densify(expected);
  if (!(a.dims == e.dims))
    return "shape " + to_string(a.dims) + " instead of " + to_string(e.dims);
  const double allowed = is_floating(e.type) ? tolerance * magnitude(e) : 0;
  return element_difference(a, e, allowed);
}

std::string difference(const op_values& actual, const op_values& expected,
                       double tolerance) {
  for (const auto& [slot, values] : expected) {
    const auto found = actual.find(slot);
    if (found == actual.end() || found->second.size() != values.size())
      return slot + ": another number of values";
    for (std::size_t i = 0; i < values.size(); ++i)
      if (auto text = difference(found->second[i], values[i], tolerance);
          !text.empty())
        return slot + ": " + text;
  }
  return {};
}

} // namespace troupe::test
