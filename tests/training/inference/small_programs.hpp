// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/graph/layers.hpp>
#include <troupe/training/prediction.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::test {

/// A test program, its parameters, and a variable to ask for.
struct asked_program {
  graph::program test;
  parameter_set parameters;
  std::string output;

  asked_program(const graph::network& net, const graph::variable_ref& asked)
    : test(net.test()), parameters(started(net.startup)), output(asked.name()) {
  }

private:
  static parameter_set started(const graph::program& startup) {
    auto values = std::make_shared<scope>();
    run_startup(startup, *values);
    return {values, 0};
  }
};

/// [batch, 1] -> [batch, 1], times `factor`, by a layer with a weight.
inline asked_program multiplier(float factor = 1) {
  graph::network net;
  const graph::layers::parameter_options weight{
    .name = "factor", .init = graph::initializer::constant{factor}};
  return {net, graph::layers::fc(net.data("x", {-1, 1}), 1,
                                 {.with_bias = false, .weight = weight})};
}

/// Rows of a table of ten: ids [batch, 1] -> [batch, 1, 2].
inline asked_program table() {
  graph::network net;
  const auto ids = net.data("id", {-1, 1}, dtype::int64);
  return {net, graph::layers::embedding(ids, {.rows = 10, .width = 2})};
}

/// A feed of one variable.
template <class T>
feed_map fed(const std::string& name, const shape& dims,
             const std::vector<T>& values) {
  arena memory{make_host_memory_source()}; // its blocks outlive it
  auto value = tensor::make(memory, dims, dtype_of<T>);
  std::copy(values.begin(), values.end(), value.template values<T>().begin());
  return {{name, value}};
}

/// A request to `multiplier`: a sample per value.
inline feed_map numbers(const std::vector<float>& values) {
  return fed<float>("x", {static_cast<std::int64_t>(values.size()), 1}, values);
}

inline std::vector<float> values_in(const tensor& value) {
  return {value.values<float>().begin(), value.values<float>().end()};
}

} // namespace troupe::test
