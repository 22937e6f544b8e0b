// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <support/op_case.hpp>

#include <troupe/base/error.hpp>

#include <vector>

/// The table of shapes and attributes that all kernels are tested with. Each
/// case carries its gradient, if the op has one. Inputs are float32.
namespace troupe::test {

std::vector<op_case> activation_cases();
std::vector<op_case> arithmetic_cases();
std::vector<op_case> concat_cases();
std::vector<op_case> conv2d_cases();
std::vector<op_case> dropout_cases();
std::vector<op_case> elementwise_cases();
std::vector<op_case> embedding_cases();
std::vector<op_case> initializer_cases();
std::vector<op_case> matmul_cases();
std::vector<op_case> metric_cases();
std::vector<op_case> movement_cases();
std::vector<op_case> normalization_cases();
std::vector<op_case> optimizer_cases();
std::vector<op_case> pool2d_cases();
std::vector<op_case> reduce_cases();
std::vector<op_case> softmax_cases();

/// All of the above.
std::vector<op_case> all_cases();

/// Ops on images of 16 channels and more, for layouts in blocks of channels;
/// not to be differentiated numerically.
std::vector<op_case> image_cases();

/// An op that must refuse its inputs, and how.
struct bad_case {
  op_case op;
  errc code;
};
std::vector<bad_case> bad_cases();

/// An attribute of Paddle's type INTS.
using ints = std::vector<std::int32_t>;

/// The same case, not differentiated numerically: too large, or at a kink.
inline op_case forward_only(op_case c) {
  c.differentiate = false;
  return c;
}

/// batch_norm over X of shape `x`, with its gradient.
op_case batch_norm_case(const shape& x, attribute_map attributes = {});

/// Optimizers of a parameter of `dims` with this gradient, dense or of rows.
std::vector<op_case> update_cases(const shape& dims, const op_value& grad);

} // namespace troupe::test
