// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

namespace troupe {

// Kernels that give a value another shape. The result has the memory of X, so
// they run on the host for all kinds of devices. The numbers of a shape are
// attributes, or inputs in memory that the host can read; else
// error(unsupported_op).

void run_reshape(kernel_context& ctx);
void run_squeeze(kernel_context& ctx);
void run_unsqueeze(kernel_context& ctx);
void run_flatten_matrix(kernel_context& ctx); ///< op flatten2
void run_flatten(kernel_context& ctx);        ///< op flatten_contiguous_range
void run_reshape_grad(kernel_context& ctx);   ///< of all of them

} // namespace troupe
