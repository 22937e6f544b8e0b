// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/arguments.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace troupe::cpu {

/// The elements of a tensor of dtype T, read-only.
template <class T>
const T* values_in(const tensor& value) {
  return value.data<T>();
}

/// Float32 input of `count` elements, one per channel or feature. Throws
/// error(shape_mismatch).
tensor vector_input(const kernel_context& ctx, std::string_view slot,
                    std::int64_t count);
/// The same for an optional input. If it is missing, all values are
/// `otherwise`.
tensor vector_input(const kernel_context& ctx, std::string_view slot,
                    std::int64_t count, float otherwise);
/// Output `slot` as `kernel_context::output` makes it, but in layout `format`;
/// null: plain.
tensor stored_output(const kernel_context& ctx, std::string_view slot,
                     const shape& dims, dtype type,
                     std::shared_ptr<const layout> format);

/// The same with shape, dtype and layout of `like`.
tensor output_like(const kernel_context& ctx, std::string_view slot,
                   const tensor& like);

/// The value of a float32 input with one element (a learning rate).
float scalar_input(const kernel_context& ctx, std::string_view slot);
/// The same for an input that may be missing.
float scalar_input(const kernel_context& ctx, std::string_view slot,
                   float otherwise);
/// The value of a boolean input with one element; false if it is missing.
bool flag_input(const kernel_context& ctx, std::string_view slot);

/// Throws error(out_of_range) naming the variable: "index 7 in Ids is not in
/// [0, 4)".
[[noreturn]] void throw_index(const kernel_context& ctx, std::string_view slot,
                              std::int64_t index, std::int64_t extent);

/// The value of a tensor with one element of any number type or bool. Throws
/// error(shape_mismatch | dtype_mismatch).
double number_of(const tensor& value, std::string_view slot);
/// The value of input `slot`; without that input, attribute `name`.
double number_input(const kernel_context& ctx, std::string_view slot,
                    std::string_view name, float otherwise);

} // namespace troupe::cpu
