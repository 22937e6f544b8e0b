// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <memory>
#include <string_view>

namespace troupe::cpu {

/// A parameter or a state of its optimizer: what an update reads and where it
/// writes, element by element. Both lie alike and are perhaps one memory.
struct updated_tensor {
  tensor in;
  tensor out;
};

/// The layout in which an update of Param leaves it and its state: that of
/// Grad, if that is the gradient of a filter in blocks (filter_blocks.hpp);
/// else null, plain.
std::shared_ptr<const layout> update_layout(const kernel_context& ctx);

/// Float32 input `slot` and output `out_slot` in `format`, which is what
/// `update_layout` says. Where both name one variable they are one memory, of
/// the variable's value in that layout: an update that ends early has lost
/// nothing. Errors are those of `float_input`, and error(shape_mismatch) if the
/// input has another shape than a gradient in blocks.
updated_tensor updated(const kernel_context& ctx, std::string_view slot,
                       std::string_view out_slot,
                       const std::shared_ptr<const layout>& format);

} // namespace troupe::cpu
