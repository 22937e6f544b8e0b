// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/layout/stored_values.hpp>
#include <troupe/kernels/kernel.hpp>
#include <troupe/kernels/precision.hpp>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace troupe::cpu {

// Images [N, C, H, W] may lie in memory as [N, C / block, H, W, block]. oneDNN
// calls these layouts nChw16c and nChw8c; its convolutions are fastest with
// them. C is a multiple of `block`, so there is no padding: the elements are
// those of the plain tensor in another order, and elementwise loops need not
// know the layout.
//
// Images in blocks may be rounded to bfloat16 in memory (`--precision bf16`).
// They still count as float32 tensors: a reader gets a float32 copy unless it
// asks for the stored values.

/// How images lie in memory.
struct image_format {
  std::int64_t block = 0;                 ///< channels per block; 0: plain
  precision numbers = precision::float32; ///< bfloat16 only in blocks

  bool rounded() const noexcept { return numbers == precision::bfloat16; }
  bool operator==(const image_format&) const = default;
};

/// The format of a tensor that `channel_blocks` describes; plain for all
/// others.
image_format format_of(const tensor& value) noexcept;

/// Channels per block of a tensor; 0 if it is plain or has a layout of another
/// kind.
std::int64_t block_of(const tensor& value) noexcept;

/// The elements of a float32 tensor, rounded or not.
stored_values values_of(const tensor& value);
stored_results results_of(tensor& value);

/// Whether images of `dims` can lie in blocks of `block` channels.
bool fits_blocks(const shape& dims, std::int64_t block) noexcept;

/// The layout of float32 images `dims` in this format; null for plain ones.
/// Asserts that they fit.
std::shared_ptr<const layout> channel_blocks(const shape& dims,
                                             const image_format& format);

/// The layout of a kernel's output, remade only when it changes.
class kept_format {
public:
  void set(const shape& dims, const image_format& format);
  const std::shared_ptr<const layout>& get() const noexcept { return layout_; }

private:
  shape dims_;
  image_format format_;
  std::shared_ptr<const layout> layout_;
};

/// Input `slot` in float32, in blocks if it is stored so and plain otherwise.
/// Rounded images are copied. Errors are those of `kernel_context::input`.
tensor stored_input(const kernel_context& ctx, std::string_view slot,
                    std::size_t index = 0);
/// The same as stored: possibly rounded; `values_of` reads it.
tensor held_input(const kernel_context& ctx, std::string_view slot,
                  std::size_t index = 0);

/// Two inputs with their elements in the same order: both in the same blocks,
/// or both plain.
std::pair<tensor, tensor> alike_inputs(const kernel_context& ctx,
                                       std::string_view first,
                                       std::string_view second);
/// The same as stored: each may be rounded.
std::pair<tensor, tensor> alike_held_inputs(const kernel_context& ctx,
                                            std::string_view first,
                                            std::string_view second);

/// Whether an elementwise op with attribute `axis` combines images x with one
/// value y per channel: y [C] at axis 1.
bool is_per_channel(const shape& x, const shape& y, std::int64_t axis);

/// out = x + bias[c] for float32 images of `dims` (channels second) in blocks
/// of `block` channels. A block of C channels is [N, H, W, C]. out may be x.
void add_to_channels(stored_results out, stored_values x, const float* bias,
                     const shape& dims, std::int64_t block);

/// totals[c] = sum of x over the samples and pixels of channel c.
void sum_channels(float* totals, const float* x, const shape& dims,
                  std::int64_t block);

} // namespace troupe::cpu
