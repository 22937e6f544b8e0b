// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <memory>
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

} // namespace troupe
