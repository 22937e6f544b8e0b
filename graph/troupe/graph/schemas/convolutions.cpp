// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <array>

namespace troupe::graph::schemas {

namespace {

/// A window that slides along one axis of extent `length`.
struct sliding {
  std::int64_t length, kernel, stride, dilation, before, after;

  /// Number of positions, -1 if the length is unknown; 0 if there is none.
  std::int64_t positions(bool ceil_mode) const noexcept {
    if (length < 0)
      return -1;
    auto room = length + before + after - (dilation * (kernel - 1) + 1);
    if (room < 0)
      return 0;
    return (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  }
};

std::vector<std::int64_t> pair_of(const shape_inference& s,
                                  std::string_view attribute) {
  auto values = s.attributes().get_ints(attribute, {1, 1});
  s.check_attribute(values.size() == 2 && values[0] > 0 && values[1] > 0,
                    attribute, "two positive values");
  return values;
}

/// [top, bottom, left, right].
std::vector<std::int64_t> paddings_of(const shape_inference& s) {
  auto p = s.attributes().get_ints("paddings", {0, 0});
  if (p.size() == 2)
    p = {p[0], p[0], p[1], p[1]};
  s.check_attribute(p.size() == 4, "paddings", "two or four values");
  return p;
}

/// Positions by attribute padding_algorithm. SAME gives ceil(length / stride)
/// and ignores dilation, as Paddle does.
std::int64_t count_positions(const shape_inference& s, sliding w,
                             bool ceil_mode) {
  const auto rule = s.attributes().get_string("padding_algorithm", "EXPLICIT");
  s.check_attribute(rule == "EXPLICIT" || rule == "SAME" || rule == "VALID",
                    "padding_algorithm", "EXPLICIT, SAME or VALID");
  if (rule == "SAME")
    return w.length < 0 ? -1 : (w.length + w.stride - 1) / w.stride;
  if (rule == "VALID")
    w.before = w.after = 0;
  return w.positions(ceil_mode);
}

std::array<std::int64_t, 2> slide(const shape_inference& s, const shape& in,
                                  std::array<std::int64_t, 2> kernel,
                                  bool dilated, bool ceil_mode) {
  const auto strides = pair_of(s, "strides");
  const auto dilations =
    dilated ? pair_of(s, "dilations") : std::vector<std::int64_t>{1, 1};
  const auto paddings = paddings_of(s);
  std::array<std::int64_t, 2> out{};
  for (std::size_t i = 0; i < 2; ++i)
    out[i] = count_positions(s,
                             {in[i + 2], kernel[i], strides[i], dilations[i],
                              paddings[2 * i], paddings[2 * i + 1]},
                             ceil_mode);
  return out;
}

/// Input [batch, in, height, width], Filter [out, in / groups, kernel height,
/// kernel width].
void infer_conv2d(shape_inference& s) {
  const auto& in = s.dims("Input");
  const auto& filter = s.dims("Filter");
  s.check(in.rank() == 4, "Input",
          "of rank 4, [batch, channels, height, width]");
  s.check(filter.rank() == 4, "Filter",
          "of rank 4, [filters, channels / groups, height, width]");
  const auto groups = s.attributes().get_int("groups", 1);
  s.check_attribute(groups > 0, "groups", "positive");
  s.check(in[1] < 0 || in[1] == filter[1] * groups, "Filter",
          "[filters, channels / groups, height, width] for Input "
            + to_string(in) + " and " + std::to_string(groups) + " groups");
  s.check(filter[0] % groups == 0, "Filter",
          "divisible into " + std::to_string(groups) + " groups of filters");
  auto out = slide(s, in, {filter[2], filter[3]}, true, false);
  s.check(out[0] != 0 && out[1] != 0, "Input",
          "at least as large as Filter " + to_string(filter)
            + " with its dilations, less the paddings");
  s.output("Output", {in[0], filter[0], out[0], out[1]}, s.type("Input"));
}

op_schema convolution(std::string_view type) {
  return {.type = type,
          .inputs = {{"Input"}, {"Filter"}},
          .outputs = {{"Output"}},
          .infer = infer_conv2d,
          .gradient = {.groups = {{"Input"}, {"Filter"}},
                       .reads = {"Input", "Filter"},
                       .outputs = {"Output"}}};
}

void infer_windows(shape_inference& s, const shape& in) {
  const auto kernel = pair_of(s, "ksize");
  if (s.attributes().get_bool("adaptive", false))
    return s.output("Out", {in[0], in[1], kernel[0], kernel[1]}, s.type("X"));
  auto out = slide(s, in, {kernel[0], kernel[1]}, false,
                   s.attributes().get_bool("ceil_mode", false));
  s.check(out[0] != 0 && out[1] != 0, "X",
          "at least as large as the window, less the paddings");
  s.output("Out", {in[0], in[1], out[0], out[1]}, s.type("X"));
}

void infer_pool2d(shape_inference& s) {
  const auto& in = s.dims("X");
  s.check(in.rank() == 4, "X", "of rank 4, [batch, channels, height, width]");
  const auto type = s.attributes().get_string("pooling_type", "max");
  s.check_attribute(type == "max" || type == "avg", "pooling_type",
                    "max or avg, not " + type);
  if (s.attributes().get_bool("global_pooling", false))
    s.output("Out", {in[0], in[1], 1, 1}, s.type("X"));
  else
    infer_windows(s, in);
}

} // namespace

void add_convolutions(op_schema_table& table) {
  add(table,
      {convolution("conv2d"),
       convolution("depthwise_conv2d"),
       {.type = "pool2d",
        .inputs = {{"X"}},
        .outputs = {{"Out"}},
        .infer = infer_pool2d,
        .gradient = {
          .groups = {{"X"}}, .reads = {"X", "Out"}, .outputs = {"Out"}}}});
}

} // namespace troupe::graph::schemas
