// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/layers/layer_writer.hpp>

namespace troupe::graph::layers {

namespace {

std::string pooling_type(bool average) {
  return average ? "avg" : "max";
}

} // namespace

variable_ref pool2d(const variable_ref& x, const pool2d_options& options,
                    call at) {
  layer_writer layer{x.net(), "pool2d", at};
  return layer.append("pool2d", {slot("X", x)},
                      {{"pooling_type", pooling_type(options.average)},
                       {"ksize", ints(options.kernel)},
                       {"strides", ints(options.stride)},
                       {"paddings", ints(options.padding)},
                       {"global_pooling", false},
                       {"adaptive", false},
                       {"exclusive", options.exclusive},
                       {"ceil_mode", options.ceil_mode},
                       {"padding_algorithm", std::string{"EXPLICIT"}},
                       {"data_format", std::string{"NCHW"}}});
}

variable_ref adaptive_pool2d(const variable_ref& x,
                             const adaptive_pool2d_options& options, call at) {
  layer_writer layer{x.net(), "pool2d", at};
  return layer.append("pool2d", {slot("X", x)},
                      {{"pooling_type", pooling_type(options.average)},
                       {"ksize", ints(options.output)},
                       {"strides", ints(1)},
                       {"paddings", ints(0)},
                       {"global_pooling", false},
                       {"adaptive", true},
                       {"exclusive", true},
                       {"ceil_mode", false},
                       {"padding_algorithm", std::string{"EXPLICIT"}},
                       {"data_format", std::string{"NCHW"}}});
}

} // namespace troupe::graph::layers
