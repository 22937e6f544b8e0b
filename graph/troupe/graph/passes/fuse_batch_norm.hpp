// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <array>
#include <set>
#include <string>
#include <string_view>

namespace troupe::graph {

/// The op types that `fuse_batch_norms` makes (Paddle's names and slots): an op
/// and its gradient without a sum, then with one.
inline constexpr std::array<std::string_view, 4> fused_batch_norm_types{
  "fused_batch_norm_act", "fused_batch_norm_act_grad",
  "fused_bn_add_activation", "fused_bn_add_activation_grad"};

/// An attribute of fused ops, bool: their batch norm was of type
/// sync_batch_norm.
inline constexpr std::string_view synchronised_attribute = "synchronised";

/// Makes one op of a batch norm that trains and the relu behind it in the main
/// block, and one of their gradients:
///
/// - batch_norm or sync_batch_norm, relu: fused_batch_norm_act;
/// - batch_norm, elementwise_add with Z of its shape, relu:
///   fused_bn_add_activation;
/// - relu_grad, (elementwise_add_grad,) batch_norm_grad: the gradient of that.
///
/// Values between them are neither written nor kept. Only where nobody else
/// reads them, they are not in `kept` and, with a gradient, the whole chain of
/// gradients is there; results are the same bit by bit.
///
/// Source: He et al., "Deep residual learning", 2016 (the chain); Jung et al.,
/// "Restructuring batch normalization to accelerate CNN training", MLSys 2019.
program fuse_batch_norms(program p, const std::set<std::string>& kept);

/// True if the main block has an op that may be fused.
bool has_batch_norms_to_fuse(const program& p);

} // namespace troupe::graph
