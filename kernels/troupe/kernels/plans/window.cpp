// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/plans/window.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe {

namespace {

[[noreturn]] void throw_attribute(std::string_view name, std::string_view why) {
  throw error(errc::invalid_argument,
              "attribute " + std::string(name) + " " + std::string(why));
}

std::vector<std::int64_t> positive_pair(const attribute_map& attributes,
                                        std::string_view name) {
  auto values = attributes.get_ints(name, {1, 1});
  if (values.size() != 2 || values[0] < 1 || values[1] < 1
      || std::ranges::max(values) > largest_window)
    throw_attribute(name, "needs two positive values of at most 2^20");
  return values;
}

// [top, bottom, left, right]
std::vector<std::int64_t> read_paddings(const attribute_map& attributes) {
  auto p = attributes.get_ints("paddings", {0, 0});
  if (p.size() == 2)
    p = {p[0], p[0], p[1], p[1]};
  if (p.size() != 4 || std::ranges::min(p) < 0
      || std::ranges::max(p) > largest_window)
    throw_attribute("paddings",
                    "needs two or four values, none negative or above 2^20");
  return p;
}

void pad_same(window_axis& a) {
  const std::int64_t wanted = (a.length + a.stride - 1) / a.stride;
  const std::int64_t total =
    std::max<std::int64_t>((wanted - 1) * a.stride + a.extent - a.length, 0);
  a.before = total / 2;
  a.after = total - a.before;
  a.dilation = 1;
}

void apply_algorithm(const std::string& algorithm, window_axis& a) {
  if (algorithm == "SAME")
    pad_same(a);
  else if (algorithm == "VALID")
    a.before = a.after = 0;
  else if (algorithm != "EXPLICIT")
    throw_attribute("padding_algorithm",
                    "is " + algorithm + ", not EXPLICIT, SAME or VALID");
}

} // namespace

std::int64_t window_axis::positions(bool ceil_mode) const {
  const std::int64_t covered = dilation * (extent - 1) + 1;
  const std::int64_t room = length + before + after - covered;
  if (room < 0)
    throw error(errc::shape_mismatch,
                "a kernel over " + std::to_string(covered)
                  + " elements does not fit into " + std::to_string(length)
                  + " with paddings " + std::to_string(before) + " and "
                  + std::to_string(after));
  return (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
}

std::array<window_axis, 2> read_window(const attribute_map& attributes,
                                       std::array<std::int64_t, 2> length,
                                       std::array<std::int64_t, 2> extent) {
  const auto strides = positive_pair(attributes, "strides");
  const auto dilations = positive_pair(attributes, "dilations");
  const auto paddings = read_paddings(attributes);
  const std::string algorithm =
    attributes.get_string("padding_algorithm", "EXPLICIT");
  std::array<window_axis, 2> axes;
  for (std::size_t i = 0; i < 2; ++i) {
    axes[i] = {length[i],    extent[i],       strides[i],
               dilations[i], paddings[2 * i], paddings[2 * i + 1]};
    apply_algorithm(algorithm, axes[i]);
  }
  return axes;
}

} // namespace troupe
