// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace troupe {

/// Lets the outputs of `code`, a kernel of `op_type`, form the sequences that
/// its input forms (Paddle's ShareLoD).
///
/// Rule: the first variable of slot X, Ids, Input or Logits that has levels
/// lends them to each output of slot Out, Output, Y, Softmax, Loss or Indices
/// that has as many rows and no levels of its own. In a gradient op, an input
/// lends them to the gradient of its own slot, or Out does where that input is
/// not read. Ops that set levels themselves (sequence_..., lod_reset) and those
/// that Paddle lists not (transpose2, reductions, matmul_v2) are left as they
/// are.
///
/// Where no input has levels, a run costs a look at each input.
std::unique_ptr<kernel> share_lod(std::string_view op_type,
                                  std::unique_ptr<kernel> code);

/// What a caller that always gives a kernel the same variables may do instead
/// of running it: while `lender` has no levels, run `code`.
struct lod_bypass {
  kernel* code;           ///< inside of the kernel
  const variable* lender; ///< null: nothing can lend
};

/// None if `made` shares no levels, or if several of `inputs` could lend them.
std::optional<lod_bypass> bypass_lod(kernel& made,
                                     std::span<const op_argument> inputs,
                                     std::span<const op_argument> outputs);

} // namespace troupe
