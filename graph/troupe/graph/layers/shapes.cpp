// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers/layer_writer.hpp>

#include <troupe/base/error.hpp>

#include <utility>

namespace troupe::graph::layers {

namespace {

variable_ref reduce(const char* type, const variable_ref& x,
                    const reduce_options& options, call at) {
  layer_writer layer{x.net(), type, at};
  return layer.append(type, {slot("X", x)},
                      {{"dim", options.axes},
                       {"keep_dim", options.keep_dims},
                       {"reduce_all", options.axes.empty()},
                       {"in_dtype", std::int32_t{-1}}, // that of X
                       {"out_dtype", std::int32_t{-1}}});
}

std::size_t part_count(const split_options& options) {
  if (!options.sections.empty())
    return options.sections.size();
  if (options.parts < 1)
    throw error{errc::invalid_argument,
                "split: option parts must be positive, not "
                  + std::to_string(options.parts)};
  return static_cast<std::size_t>(options.parts);
}

} // namespace

variable_ref concat(const std::vector<variable_ref>& x,
                    const concat_options& options, call at) {
  auto parts = slot("X", x);
  layer_writer layer{x.front().net(), "concat", at};
  return layer.append("concat", {std::move(parts)}, {{"axis", options.axis}});
}

std::vector<variable_ref> split(const variable_ref& x,
                                const split_options& options, call at) {
  layer_writer layer{x.net(), "split", at};
  std::vector<variable_ref> parts;
  for (std::size_t i = 0; i < part_count(options); ++i)
    parts.push_back(layer.temporary());
  const bool equal = options.sections.empty();
  layer.append("split", {slot("X", x)}, {slot("Out", parts)},
               {{"axis", options.axis},
                {"num", equal ? options.parts : 0},
                {"sections", options.sections}},
               parts.front());
  return parts;
}

variable_ref reshape(const variable_ref& x,
                     const std::vector<std::int32_t>& dims, call at) {
  layer_writer layer{x.net(), "reshape2", at};
  return layer.append_with("XShape", "reshape2", {slot("X", x)},
                           {{"shape", dims}});
}

variable_ref transpose(const variable_ref& x,
                       const std::vector<std::int32_t>& axes, call at) {
  layer_writer layer{x.net(), "transpose", at};
  return layer.append_with("XShape", "transpose2", {slot("X", x)},
                           {{"axis", axes}});
}

variable_ref flatten(const variable_ref& x, const flatten_options& options,
                     call at) {
  layer_writer layer{x.net(), "flatten", at};
  return layer.append_with(
    "XShape", "flatten_contiguous_range", {slot("X", x)},
    {{"start_axis", options.start_axis}, {"stop_axis", options.stop_axis}});
}

variable_ref slice(const variable_ref& x, const slice_options& options,
                   call at) {
  layer_writer layer{x.net(), "slice", at};
  return layer.append("slice", {slot("Input", x)},
                      {{"axes", options.axes},
                       {"starts", options.starts},
                       {"ends", options.ends},
                       {"decrease_axis", std::vector<std::int32_t>{}}});
}

variable_ref reduce_mean(const variable_ref& x, const reduce_options& options,
                         call at) {
  return reduce("reduce_mean", x, options, at);
}

variable_ref reduce_sum(const variable_ref& x, const reduce_options& options,
                        call at) {
  return reduce("reduce_sum", x, options, at);
}

} // namespace troupe::graph::layers
