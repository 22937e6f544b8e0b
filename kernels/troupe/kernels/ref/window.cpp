// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/window.hpp>

#include <troupe/kernels/ref/array.hpp>

#include <algorithm>

namespace troupe::ref {

namespace {

std::vector<std::int64_t> read_pair(const attribute_map& attributes,
                                    const char* name, std::int64_t otherwise) {
  auto values = attributes.get_ints(name, {otherwise, otherwise});
  require(values.size() == 2, errc::invalid_argument,
          std::string(name) + " needs two values");
  return values;
}

/// [top, bottom, left, right].
std::vector<std::int64_t> read_paddings(const attribute_map& attributes) {
  auto p = attributes.get_ints("paddings", {0, 0});
  if (p.size() == 2)
    p = {p[0], p[0], p[1], p[1]};
  require(p.size() == 4, errc::invalid_argument,
          "paddings needs two or four values");
  return p;
}

void pad_same(sliding& s, std::int64_t length) {
  const auto wanted = (length + s.stride - 1) / s.stride;
  const auto total =
    std::max<std::int64_t>((wanted - 1) * s.stride + s.extent - length, 0);
  s.before = total / 2;
  s.after = total - s.before;
  s.dilation = 1;
}

} // namespace

std::int64_t sliding::positions(std::int64_t length, bool ceil_mode) const {
  const auto covered = dilation * (extent - 1) + 1;
  const auto room = length + before + after - covered;
  require(room >= 0, errc::shape_mismatch,
          "a kernel of " + std::to_string(covered)
            + " elements does not fit in " + std::to_string(length)
            + " and its padding");
  return (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
}

std::array<sliding, 2> read_sliding(const attribute_map& attributes,
                                    std::array<std::int64_t, 2> length,
                                    std::array<std::int64_t, 2> extent) {
  const auto strides = read_pair(attributes, "strides", 1);
  const auto dilations = read_pair(attributes, "dilations", 1);
  const auto paddings = read_paddings(attributes);
  const auto rule = attributes.get_string("padding_algorithm", "EXPLICIT");
  std::array<sliding, 2> axes;
  for (std::size_t i = 0; i < 2; ++i) {
    require(strides[i] > 0 && dilations[i] > 0, errc::invalid_argument,
            "strides and dilations must be positive");
    axes[i] = {extent[i], strides[i], dilations[i], paddings[2 * i],
               paddings[2 * i + 1]};
    if (rule == "SAME")
      pad_same(axes[i], length[i]);
    else if (rule == "VALID")
      axes[i].before = axes[i].after = 0;
    else
      require(rule == "EXPLICIT", errc::invalid_argument,
              "unknown padding_algorithm " + rule);
  }
  return axes;
}

} // namespace troupe::ref
