// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <memory>

namespace troupe::cpu {

/// Y = relu(batch norm of X) or, with an input Z of X's shape, relu(batch norm
/// of X + Z): Paddle's fused_batch_norm_act and fused_bn_add_activation, bit by
/// bit what the two or three ops would write, in the memory traffic of one.
/// Throws error(invalid_argument) for another act_type than relu.
std::unique_ptr<kernel> make_fused_batch_norm(const attribute_map& attributes);

/// The gradients of X, Scale and Bias; the sign of Y is computed again from X.
std::unique_ptr<kernel>
make_fused_batch_norm_grad(const attribute_map& attributes);

/// The gradients of X, Z, Scale and Bias; the sign of Y is read.
std::unique_ptr<kernel>
make_fused_batch_norm_add_grad(const attribute_map& attributes);

/// Y of the op without Z once more, bit by bit, as it lay: from X, Scale, Bias,
/// SavedMean and SavedVariance.
std::unique_ptr<kernel>
make_recomputed_batch_norm(const attribute_map& attributes);

} // namespace troupe::cpu
