// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

#include <algorithm>
#include <array>

namespace troupe::graph::schemas {

namespace {

/// A window that slides along one axis of extent `length`.
struct sliding {
  std::int64_t length, kernel, stride, dilation, before, after;

  /// Number of positions. -1 if the length is unknown, 0 if the window does not
  /// fit.
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

/// Number of positions for the attribute padding_algorithm. SAME gives
/// ceil(length / stride) and ignores dilation, as in Paddle.
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

bool has_channels_last(const shape_inference& s) {
  return s.attributes().get_string("data_format", "NCHW") == "NHWC";
}

/// Dims of an image in the order N, C, H, W. The program's data format can be
/// N, H, W, C. `channels_in_place` is the inverse.
shape channels_second(const shape_inference& s, const shape& dims) {
  return has_channels_last(s) ? shape{dims[0], dims[3], dims[1], dims[2]}
                              : dims;
}

shape channels_in_place(const shape_inference& s, const shape& dims) {
  return has_channels_last(s) ? shape{dims[0], dims[2], dims[3], dims[1]}
                              : dims;
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
  const auto& filter = s.dims("Filter");
  s.check(s.dims("Input").rank() == 4, "Input",
          "of rank 4, [batch, channels, height, width]");
  const auto in = channels_second(s, s.dims("Input"));
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
  s.output("Output", channels_in_place(s, {in[0], filter[0], out[0], out[1]}),
           s.type("Input"));
}

/// Extent of the image axis `axis` that the filter covers at `positions`
/// positions.
std::int64_t covered_extent(const shape_inference& s, std::size_t axis,
                            std::int64_t positions, std::int64_t kernel) {
  const auto& a = s.attributes();
  const auto sizes = a.get_ints("output_size", {});
  if (sizes.size() > axis)
    return sizes[axis];
  if (positions < 0)
    return -1;
  const auto rule = a.get_string("padding_algorithm", "EXPLICIT");
  const auto stride = pair_of(s, "strides")[axis];
  const auto pads = paddings_of(s);
  auto padding = pads[2 * axis] + pads[2 * axis + 1];
  auto dilation = pair_of(s, "dilations")[axis];
  if (rule == "SAME") {
    dilation = 1;
    padding = std::max<std::int64_t>(
      ((positions + stride - 1) / stride - 1) * stride + kernel - positions, 0);
  } else if (rule == "VALID") {
    padding = 0;
  }
  const auto more = a.get_ints("output_padding", {});
  return (positions - 1) * stride - padding + dilation * (kernel - 1) + 1
         + (more.size() > axis ? more[axis] : 0);
}

/// Filter [in, out / groups, kernel height, kernel width].
void infer_conv2d_transpose(shape_inference& s) {
  const auto& filter = s.dims("Filter");
  s.check(s.dims("Input").rank() == 4, "Input",
          "of rank 4, [batch, channels, height, width]");
  s.check(filter.rank() == 4, "Filter",
          "of rank 4, [channels, filters / groups, height, width]");
  const auto in = channels_second(s, s.dims("Input"));
  const auto groups = s.attributes().get_int("groups", 1);
  s.check_attribute(groups > 0, "groups", "positive");
  s.check(fits(in[1], filter[0]), "Filter",
          "[channels, ...] for Input " + to_string(s.dims("Input")));
  s.output("Output",
           channels_in_place(s, {in[0], filter[1] * groups,
                                 covered_extent(s, 0, in[2], filter[2]),
                                 covered_extent(s, 1, in[3], filter[3])}),
           s.type("Input"));
}

op_schema convolution(std::string_view type,
                      void (*infer)(shape_inference&) = infer_conv2d) {
  return {.type = type,
          .inputs = {{"Input"}, {"Filter"}, {"Bias", slot_arity::optional}},
          .outputs = {{"Output"}},
          .infer = infer,
          .gradient = {.groups = {{"Input"}, {"Filter"}},
                       .reads = {"Input", "Filter"},
                       .outputs = {"Output"}}};
}

/// Mask is optional: the positions of the largest elements.
void output_windows(shape_inference& s, const shape& dims) {
  s.output("Out", channels_in_place(s, dims), s.type("X"));
  s.output("Mask", dims, dtype::int32);
}

void infer_windows(shape_inference& s, const shape& in) {
  const auto kernel = pair_of(s, "ksize");
  if (s.attributes().get_bool("adaptive", false))
    return output_windows(s, {in[0], in[1], kernel[0], kernel[1]});
  auto out = slide(s, in, {kernel[0], kernel[1]}, false,
                   s.attributes().get_bool("ceil_mode", false));
  s.check(out[0] != 0 && out[1] != 0, "X",
          "at least as large as the window, less the paddings");
  output_windows(s, {in[0], in[1], out[0], out[1]});
}

void infer_pool2d(shape_inference& s) {
  s.check(s.dims("X").rank() == 4, "X",
          "of rank 4, [batch, channels, height, width]");
  const auto in = channels_second(s, s.dims("X"));
  const auto type = s.attributes().get_string("pooling_type", "max");
  s.check_attribute(type == "max" || type == "avg", "pooling_type",
                    "max or avg, not " + type);
  if (s.attributes().get_bool("global_pooling", false))
    output_windows(s, {in[0], in[1], 1, 1});
  else
    infer_windows(s, in);
}

} // namespace

void add_convolutions(op_schema_table& table) {
  add(table,
      {convolution("conv2d"),
       convolution("depthwise_conv2d"),
       convolution("conv2d_transpose", infer_conv2d_transpose),
       convolution("depthwise_conv2d_transpose", infer_conv2d_transpose),
       {.type = "max_pool2d_with_index",
        .inputs = {{"X"}},
        .outputs = {{"Out"}, {"Mask"}},
        .infer = infer_pool2d,
        .gradient = {.groups = {{"X"}},
                     .reads = {"X", "Mask"},
                     .outputs = {"Out"}}},
       {.type = "pool2d",
        .inputs = {{"X"}},
        .outputs = {{"Out"}},
        .infer = infer_pool2d,
        .gradient = {
          .groups = {{"X"}}, .reads = {"X", "Out"}, .outputs = {"Out"}}}});
}

} // namespace troupe::graph::schemas
