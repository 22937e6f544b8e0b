// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <cstdint>
#include <string>
#include <variant>

/// Initial values of parameters. Random numbers are derived from the run's seed
/// and the parameter's name, so they do not depend on the number of devices. A
/// `seed` other than 0 replaces the run's seed.
namespace troupe::graph::initializer {

/// All elements equal `value`.
struct constant {
  float value = 0;
};

/// Uniform in [low, high).
struct uniform {
  float low = -1;
  float high = 1;
  std::int32_t seed = 0;
};

/// Normal with the given mean and standard deviation.
struct normal {
  float mean = 0;
  float stddev = 1;
  std::int32_t seed = 0;
};

/// Normal; numbers more than two standard deviations from the mean are redrawn.
struct truncated_normal {
  float mean = 0;
  float stddev = 1;
  std::int32_t seed = 0;
};

/// Keeps the variance of activations and gradients equal across layers: uniform
/// in +-sqrt(6 / (fan_in + fan_out)), or normal with variance 2 / (fan_in +
/// fan_out).
/// Source: Glorot and Bengio, AISTATS 2010.
struct xavier {
  bool as_uniform = true;
  std::int32_t seed = 0;
};

/// Like xavier, for layers followed by a (leaky) ReLU: variance 2 / ((1 +
/// negative_slope^2) fan_in). PyTorch's default for its linear and convolution
/// layers is {.as_uniform = true, .negative_slope = sqrt(5)}.
/// Source: He et al., ICCV 2015.
struct msra {
  bool as_uniform = false;
  float negative_slope = 0;
  std::int32_t seed = 0;
};

/// Any of the initializers.
using any =
  std::variant<constant, uniform, normal, truncated_normal, xavier, msra>;

/// Makes the op that initializes variable `name`. For a matrix [in, out],
/// fan_in and fan_out are extents 0 and 1. For filters [out, in, ...], they are
/// extents 1 and 0, each multiplied by the remaining extents. Throws
/// error(invalid_argument) if xavier or msra is used with fewer than two
/// extents, or if `dims` is not fully known.
op_desc make_op(const any& how, const std::string& name, const shape& dims,
                dtype type);

} // namespace troupe::graph::initializer
