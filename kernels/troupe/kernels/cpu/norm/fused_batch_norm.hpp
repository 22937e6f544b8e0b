// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <memory>

namespace troupe::cpu {

/// Y = relu(batch norm of X) or, with an input Z of X's shape, relu(batch norm
/// of X + Z): Paddle's fused_batch_norm_act and fused_bn_add_activation. The
/// result has the same bits as that of the two or three single ops, but takes
/// the memory traffic of one. Throws error(invalid_argument) if act_type is not
/// relu.
std::unique_ptr<kernel> make_fused_batch_norm(const attribute_map& attributes);

/// The gradients of X, Scale and Bias. The sign of Y is recomputed from X.
std::unique_ptr<kernel>
make_fused_batch_norm_grad(const attribute_map& attributes);

/// The gradients of X, Z, Scale and Bias. The sign of Y is read from Y.
std::unique_ptr<kernel>
make_fused_batch_norm_add_grad(const attribute_map& attributes);

/// Recomputes Y of the op without Z, with the same bits and layout, from X,
/// Scale, Bias, SavedMean and SavedVariance.
std::unique_ptr<kernel>
make_recomputed_batch_norm(const attribute_map& attributes);

} // namespace troupe::cpu
