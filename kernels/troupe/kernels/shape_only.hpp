// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstddef>
#include <string_view>

namespace troupe {

/// A value with shape, dtype and levels of `like`, but without elements and
/// memory. It replaces an input whose elements are no longer needed, for ops
/// that read only its shape. Reading its elements throws error(kernel_failure).
tensor shape_only(const tensor& like);

/// The shape of an input, with or without elements. Errors are those of
/// `kernel_context::input`.
shape input_shape(const kernel_context& ctx, std::string_view slot,
                  std::size_t index = 0);

} // namespace troupe
