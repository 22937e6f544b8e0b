// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

namespace troupe::cpu {

/// A parameter or a state of its optimizer: what an update reads and where it
/// writes, element by element. Both have the same layout and may be the same
/// memory.
struct updated_tensor {
  tensor in;
  tensor out;
};

/// The layout that Param and its states have after an update: that of the first
/// tensor in Grad, if it is the gradient of a filter in blocks
/// (filter_blocks.hpp); else null, plain.
std::shared_ptr<const layout> update_layout(const kernel_context& ctx);

/// Float32 input `index` of `slot` in `format`, which comes from
/// `update_layout`. Errors are those of `float_input`, and
/// error(shape_mismatch) if the gradient is in blocks and has another shape
/// than the input.
tensor input_in(const kernel_context& ctx, std::string_view slot,
                const std::shared_ptr<const layout>& format,
                std::size_t index = 0);

/// Float32 input `slot` and output `out_slot` in `format`, which comes from
/// `update_layout`. If both are one variable, they share the memory of its
/// value, which is first converted to that layout: if the update then fails,
/// nothing is lost. Errors are those of `input_in`.
updated_tensor updated(const kernel_context& ctx, std::string_view slot,
                       std::string_view out_slot,
                       const std::shared_ptr<const layout>& format);

} // namespace troupe::cpu
