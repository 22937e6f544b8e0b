// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <cstdint>
#include <string>
#include <variant>

/// How parameters start. The numbers come from the run's seed and the
/// parameter's name, so that they do not depend on the number of devices;
/// a `seed` other than 0 replaces the run's.
namespace troupe::graph::initializer {

/// All elements are `value`.
struct constant {
  float value = 0;
};

/// Uniform in [low, high).
struct uniform {
  float low = -1;
  float high = 1;
  std::int32_t seed = 0;
};

/// Normal with that mean and standard deviation.
struct normal {
  float mean = 0;
  float stddev = 1;
  std::int32_t seed = 0;
};

/// Normal numbers more than two standard deviations off are drawn again.
struct truncated_normal {
  float mean = 0;
  float stddev = 1;
  std::int32_t seed = 0;
};

/// Keeps the variance of activations and gradients equal over layers: uniform
/// in +-sqrt(6 / (fan_in + fan_out)), or normal with variance
/// 2 / (fan_in + fan_out). Source: Glorot and Bengio, AISTATS 2010.
struct xavier {
  bool as_uniform = true;
  std::int32_t seed = 0;
};

/// Xavier's for layers that a (leaky) ReLU follows: variance
/// 2 / ((1 + negative_slope^2) fan_in). PyTorch's default for its linear and
/// convolution layers is {.as_uniform = true, .negative_slope = sqrt(5)}.
/// Source: He et al., ICCV 2015.
struct msra {
  bool as_uniform = false;
  float negative_slope = 0;
  std::int32_t seed = 0;
};

/// One of the ways to start.
using any =
  std::variant<constant, uniform, normal, truncated_normal, xavier, msra>;

/// The op that gives variable `name` its first value. fan_in and fan_out are
/// extents 0 and 1 of a matrix [in, out]; for filters [out, in, ...] extents 1
/// and 0, times the extents behind them. Throws error(invalid_argument) when
/// xavier or msra meet fewer than two extents or `dims` is not fully known.
op_desc make_op(const any& how, const std::string& name, const shape& dims,
                dtype type);

} // namespace troupe::graph::initializer
