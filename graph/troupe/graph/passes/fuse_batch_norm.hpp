// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <array>
#include <set>
#include <string>
#include <string_view>

namespace troupe::graph {

/// The op types that `fuse_batch_norms` makes (Paddle's names and slots): op
/// and gradient without a sum, then op and gradient with a sum.
inline constexpr std::array<std::string_view, 4> fused_batch_norm_types{
  "fused_batch_norm_act", "fused_batch_norm_act_grad",
  "fused_bn_add_activation", "fused_bn_add_activation_grad"};

/// Bool attribute of fused ops: the batch norm had type sync_batch_norm.
inline constexpr std::string_view synchronised_attribute = "synchronised";

/// Fuses a training batch norm and the following relu of the main block into
/// one op, and their gradients into another:
///
/// - batch_norm or sync_batch_norm, relu: fused_batch_norm_act;
/// - batch_norm, elementwise_add with Z of its shape, relu:
///   fused_bn_add_activation;
/// - relu_grad, (elementwise_add_grad,) batch_norm_grad: the gradient of the
///   fused op.
///
/// Intermediate values are neither written nor kept. Ops are fused only if no
/// other op reads these values and they are not in `kept`. If there is a
/// gradient, the whole chain of gradients must be present. Results are
/// bit-identical.
///
/// Source: He et al., "Deep residual learning", 2016 (the chain); Jung et al.,
/// "Restructuring batch normalization to accelerate CNN training", MLSys 2019.
program fuse_batch_norms(program p, const std::set<std::string>& kept);

/// True if the main block has a batch norm that could be fused.
bool has_batch_norms_to_fuse(const program& p);

} // namespace troupe::graph
