// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstddef>
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
/// Grad, of its first argument that holds a tensor, if that is the gradient of
/// a filter in blocks (filter_blocks.hpp); else null, plain.
std::shared_ptr<const layout> update_layout(const kernel_context& ctx);

/// Float32 input `index` of `slot` in `format`, which is what `update_layout`
/// says. Errors are those of `float_input`, and error(shape_mismatch) if it has
/// another shape than a gradient in blocks.
tensor input_in(const kernel_context& ctx, std::string_view slot,
                const std::shared_ptr<const layout>& format,
                std::size_t index = 0);

/// Float32 input `slot` and output `out_slot` in `format`, which is what
/// `update_layout` says. Where both name one variable they are one memory, of
/// the variable's value in that layout: an update that ends early has lost
/// nothing. Errors are those of `input_in`.
updated_tensor updated(const kernel_context& ctx, std::string_view slot,
                       std::string_view out_slot,
                       const std::shared_ptr<const layout>& format);

} // namespace troupe::cpu
