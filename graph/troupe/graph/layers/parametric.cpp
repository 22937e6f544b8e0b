// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers/layer_writer.hpp>

#include <troupe/base/error.hpp>

#include <utility>

namespace troupe::graph::layers {

namespace {

/// Checks an option without a default: it must be positive.
void check_given(std::int64_t value, const char* layer, const char* option) {
  if (value <= 0)
    throw error{errc::invalid_argument, std::string{layer} + ": option "
                                          + option + " must be positive, not "
                                          + std::to_string(value)};
}

/// Parameters are created before anything is fed, so their extents must be
/// known.
void check_known(std::int64_t extent, const char* layer,
                 const variable_ref& x) {
  if (extent > 0)
    return;
  error_context where;
  where.op_type = layer;
  where.variable = x.name();
  throw error{errc::shape_mismatch,
              std::string{layer} + ": the shape " + to_string(x.dims())
                + " of '" + x.name()
                + "' leaves the size of its parameters open",
              std::move(where)};
}

variable_ref add_bias(const layer_writer& layer, const variable_ref& x,
                      std::int64_t size, std::int32_t axis,
                      const parameter_options& options) {
  auto bias = layer.parameter("b", {size}, options, initializer::constant{0});
  return layer.append("elementwise_add", {slot("X", x), slot("Y", bias)},
                      {{"axis", axis}});
}

/// Product of the extents from `first` on. 0 if there are none, `first` is not
/// positive, or one is unknown.
std::int64_t columns_of(const shape& dims, std::int32_t first) {
  if (first <= 0 || static_cast<std::size_t>(first) >= dims.rank())
    return 0;
  std::int64_t columns = 1;
  for (auto i = static_cast<std::size_t>(first); i < dims.rank(); ++i)
    columns = dims[i] < 0 ? 0 : columns * dims[i];
  return columns;
}

std::int64_t channels_of(const variable_ref& x, const char* layer) {
  const auto channels = x.dims().rank() < 2 ? 0 : x.dims()[1];
  check_known(channels, layer, x);
  return channels;
}

shape filter_shape(const variable_ref& x, const conv2d_options& o) {
  check_given(o.filters, "conv2d", "filters");
  check_given(o.groups, "conv2d", "groups");
  const auto channels = channels_of(x, "conv2d");
  if (channels % o.groups != 0)
    throw error{errc::shape_mismatch, "conv2d: the channels of '" + x.name()
                                        + "' " + to_string(x.dims())
                                        + " are not divisible into "
                                        + std::to_string(o.groups) + " groups"};
  return {o.filters, channels / o.groups, o.kernel.height, o.kernel.width};
}

} // namespace

variable_ref fc(const variable_ref& x, std::int64_t size,
                const fc_options& options, call at) {
  check_given(size, "fc", "size");
  const auto columns = columns_of(x.dims(), options.num_flatten_dims);
  check_known(columns, "fc", x);
  layer_writer layer{x.net(), "fc", at};
  auto weight = layer.parameter("w", {columns, size}, options.weight,
                                initializer::xavier{});
  auto out = layer.append("mul", {slot("X", x), slot("Y", weight)},
                          {{"x_num_col_dims", options.num_flatten_dims},
                           {"y_num_col_dims", std::int32_t{1}}});
  if (options.with_bias)
    out = add_bias(layer, out, size, options.num_flatten_dims, options.bias);
  return layer.activate(out, options.act);
}

variable_ref conv2d(const variable_ref& x, const conv2d_options& options,
                    call at) {
  const auto filter = filter_shape(x, options);
  const bool depthwise = options.groups > 1 && filter[1] == 1
                         && options.filters % options.groups == 0;
  layer_writer layer{x.net(), "conv2d", at};
  auto weight =
    layer.parameter("w", filter, options.weight, initializer::msra{});
  auto out = layer.append(depthwise ? "depthwise_conv2d" : "conv2d",
                          {slot("Input", x), slot("Filter", weight)},
                          {{"strides", ints(options.stride)},
                           {"paddings", ints(options.padding)},
                           {"dilations", ints(options.dilation)},
                           {"groups", options.groups},
                           {"padding_algorithm", std::string{"EXPLICIT"}},
                           {"data_format", std::string{"NCHW"}}},
                          "Output");
  if (options.with_bias)
    out = add_bias(layer, out, options.filters, 1, options.bias);
  return layer.activate(out, options.act);
}

variable_ref batch_norm(const variable_ref& x,
                        const batch_norm_options& options, call at) {
  const shape dims{channels_of(x, "batch_norm")};
  layer_writer layer{x.net(), "batch_norm", at};
  auto scale =
    layer.parameter("w", dims, options.scale, initializer::constant{1});
  auto bias =
    layer.parameter("b", dims, options.bias, initializer::constant{0});
  auto mean = layer.state("w", dims, 0);
  auto variance = layer.state("w", dims, 1);
  auto saved_mean = layer.temporary();
  auto saved_variance = layer.temporary();
  auto y = layer.temporary();
  layer.append("batch_norm",
               {slot("X", x), slot("Scale", scale), slot("Bias", bias),
                slot("Mean", mean), slot("Variance", variance)},
               {slot("Y", y), slot("MeanOut", mean),
                slot("VarianceOut", variance), slot("SavedMean", saved_mean),
                slot("SavedVariance", saved_variance),
                slot("ReserveSpace", layer.temporary())},
               {{"momentum", options.momentum},
                {"epsilon", options.epsilon},
                {"is_test", false},
                {"use_global_stats", options.use_global_stats},
                {"trainable_statistics", false},
                {"data_layout", std::string{"NCHW"}}},
               y);
  return layer.activate(y, options.act);
}

variable_ref layer_norm(const variable_ref& x,
                        const layer_norm_options& options, call at) {
  const auto columns = columns_of(x.dims(), options.begin_norm_axis);
  check_known(columns, "layer_norm", x);
  layer_writer layer{x.net(), "layer_norm", at};
  auto scale =
    layer.parameter("w", {columns}, options.scale, initializer::constant{1});
  auto bias =
    layer.parameter("b", {columns}, options.bias, initializer::constant{0});
  auto mean = layer.temporary();
  auto variance = layer.temporary();
  auto y = layer.temporary();
  return layer.append(
    "layer_norm", {slot("X", x), slot("Scale", scale), slot("Bias", bias)},
    {slot("Y", y), slot("Mean", mean), slot("Variance", variance)},
    {{"begin_norm_axis", options.begin_norm_axis},
     {"epsilon", options.epsilon}},
    y);
}

variable_ref embedding(const variable_ref& ids,
                       const embedding_options& options, call at) {
  check_given(options.rows, "embedding", "rows");
  check_given(options.width, "embedding", "width");
  layer_writer layer{ids.net(), "embedding", at};
  auto table = layer.parameter("w", {options.rows, options.width},
                               options.weight, initializer::xavier{});
  return layer.append(
    "lookup_table_v2", {slot("W", table), slot("Ids", ids)},
    {{"is_sparse", options.is_sparse}, {"padding_idx", options.padding_idx}});
}

} // namespace troupe::graph::layers
