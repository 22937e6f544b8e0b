// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <string_view>

namespace troupe {

/// Name of the layout of values without elements.
inline constexpr std::string_view shape_only_layout = "shape only";

/// A value with shape, dtype and levels of `like`, but without elements and
/// memory. It replaces an input whose elements are no longer needed, for ops
/// that read only its shape. Reading its elements throws error(kernel_failure).
tensor shape_only(const tensor& like);
tensor shape_only(const shape& dims, dtype type);
/// True if a value is one that `shape_only` has made.
bool is_shape_only(const tensor& value) noexcept;

/// The shape of an input, with or without elements. Errors are those of
/// `kernel_context::input`.
shape input_shape(const kernel_context& ctx, std::string_view slot,
                  std::size_t index = 0);

} // namespace troupe
