// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <training/data_parallel/values.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/graph/network.hpp>
#include <troupe/training/data_parallel/data_parallel.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

using floats = std::vector<float>;
using tensors = std::vector<tensor>;
using graph::variable_ref;

/// Gives parameters of a module the values that PyTorch's have.
inline void set(graph_module& m, const std::string& parameter,
                const tensor& value) {
  m.values().var(parameter).set(value);
}

inline tensor gradient_of(graph_module& m, const std::string& parameter) {
  auto* held = m.gradient(parameter);
  REQUIRE_MESSAGE(held, parameter);
  return held->as_tensor();
}

inline std::shared_ptr<graph_module>
make_module(const graph::network& net, const std::vector<variable_ref>& inputs,
            const std::vector<variable_ref>& outputs,
            bool wants_inputs = true) {
  auto d = describe_module(net, inputs, outputs);
  if (wants_inputs)
    for (auto& x : inputs)
      if (is_floating(x.type()))
        d.input_gradients.push_back(x.name());
  return std::make_shared<graph_module>(std::move(d));
}

/// Linear, tanh, linear, with the weights that PyTorch's net has.
struct mlp {
  torch_values torch;
  graph::network net;
  variable_ref x = net.data("x", {-1, 4});
  variable_ref y = layers::fc(layers::fc(x, 6, {.act = "tanh"}), 3);
  std::shared_ptr<graph_module> net_module = make_module(net, {x}, {y});
  /// Names of parameters here and there.
  std::vector<std::pair<std::string, std::string>> names{
    {"fc_0.w_0", "0.weight"},
    {"fc_0.b_0", "0.bias"},
    {"fc_1.w_0", "2.weight"},
    {"fc_1.b_0", "2.bias"}};

  mlp() {
    for (auto& [here, there] : names)
      set(*net_module, here, torch["mlp." + there]);
  }
};

inline std::vector<device_id> ids(const std::string& text) {
  return parse_devices(text);
}

inline tensor doubled(const tensor& x) {
  auto values = values_of(x);
  for (auto& v : values)
    v *= 2;
  return tensor_of(x.dims(), values);
}

} // namespace troupe::test
