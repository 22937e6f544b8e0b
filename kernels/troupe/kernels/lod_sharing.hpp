// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstdint>
#include <string_view>

namespace troupe {

/// Which outputs of an op form the sequences that an input forms (Paddle's
/// ShareLoD), so that kernels need not pass levels on.
enum class lod_rule : std::uint8_t {
  /// Outputs have levels of their own or none: ops that set levels
  /// (sequence_..., lod_reset), those that Paddle does not list (transpose2,
  /// reductions, matmul_v2), and ops that run a block.
  none,
  /// The first variable of slot X, Ids, Input or Logits that has levels lends
  /// them to each output of slot Out, Output, Y, Softmax, Loss or Indices.
  inputs_to_outputs,
  /// An input lends its levels to the gradient of its own slot. If the op does
  /// not read that input, Out lends them.
  values_to_gradients,
};

lod_rule lod_rule_of(std::string_view op_type);

/// Runs `code`, then gives the levels of inputs to the outputs that the rule
/// names, if they have as many rows and no levels of their own. If no input has
/// levels, the run costs one look at each input. Throws what `code` throws.
void run_kernel(kernel& code, lod_rule rule, kernel_context& ctx);

/// The inputs that can lend levels. A caller that always passes the same
/// variables finds it once, and can call `code.run` while no lender has levels.
struct lod_lenders {
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::uint32_t several = UINT32_MAX - 1;
  /// Position of the only lender among the inputs, `none` or `several`.
  std::uint32_t which = none;
};

lod_lenders find_lod_lenders(lod_rule rule, const op_arguments& inputs,
                             const op_arguments& outputs);

} // namespace troupe
