// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>

#include <troupe/kernels/cpu/layout/layout_traffic.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/assert.hpp>

#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

// [pixels, block] -> [block, pixels]
TROUPE_SIMD void unblock(float* out, const float* x, std::int64_t pixels,
                         std::int64_t block) {
  for (std::int64_t c = 0; c < block; ++c)
#pragma omp simd
    for (std::int64_t p = 0; p < pixels; ++p)
      out[c * pixels + p] = x[p * block + c];
}

// out and x have the same layout.
struct add_to_pixels {
  template <class T>
  TROUPE_INLINE static void run(T* out, const T* x, const float* bias,
                                std::int64_t pixels, std::int64_t block) {
    for (std::int64_t p = 0; p < pixels; ++p)
#pragma omp simd
      for (std::int64_t c = 0; c < block; ++c)
        store(out[p * block + c], value_of(x[p * block + c]) + bias[c]);
  }
};

class blocked_layout final : public layout {
public:
  blocked_layout(const shape& dims, const image_format& format)
    : dims_(dims), format_(format) {}

  const image_format& format() const noexcept { return format_; }

  std::size_t bytes() const noexcept override {
    return static_cast<std::size_t>(dims_.numel())
           * (format_.rounded() ? sizeof(bfloat16) : sizeof(float));
  }

  bool equals(const layout& other) const noexcept override {
    const auto* same = dynamic_cast<const blocked_layout*>(&other);
    return same && same->format_ == format_ && same->dims_ == dims_;
  }

  bool is_permutation() const noexcept override { return !format_.rounded(); }

  std::string name() const override {
    return "nChw" + std::to_string(format_.block) + "c"
           + (format_.rounded() ? " bf16" : "");
  }

  void to_plain(const tensor& source, tensor& target, stream*) const override {
    const std::int64_t pixels = dims_.numel(2, 4);
    const std::int64_t size = pixels * format_.block;
    std::vector<float> plane(format_.rounded() ? static_cast<std::size_t>(size)
                                               : 0);
    const stored_values from = values_of(source);
    float* to = target.data<float>();
    for (std::int64_t i = 0; i < dims_[0] * dims_[1] / format_.block; ++i) {
      const stored_values at = from + i * size;
      if (format_.rounded())
        copy_stored(plane.data(), at, size);
      unblock(to + i * size, format_.rounded() ? plane.data() : at.floats(),
              pixels, format_.block);
    }
    add_layout_traffic(bytes() + target.bytes());
  }

private:
  shape dims_;
  image_format format_;
};

// Returns a float32 copy of rounded images; others as they are.
tensor as_floats(const kernel_context& ctx, const tensor& value) {
  const auto format = format_of(value);
  if (!format.rounded())
    return value;
  const auto blocks = channel_blocks(value.dims(), {format.block});
  tensor copy(value.dims(), value.type(),
              ctx.on().memory().allocate(blocks->bytes()), blocks);
  copy.set_levels(value.levels());
  in_ranges(ctx, value.numel(), [&](std::int64_t first, std::int64_t n) {
    copy_stored(results_of(copy) + first, values_of(value) + first, n);
  });
  add_layout_traffic(value.bytes() + copy.bytes());
  return copy;
}

} // namespace

image_format format_of(const tensor& value) noexcept {
  const auto* blocked =
    dynamic_cast<const blocked_layout*>(value.format().get());
  return blocked ? blocked->format() : image_format{};
}

std::int64_t block_of(const tensor& value) noexcept {
  return format_of(value).block;
}

stored_values values_of(const tensor& value) {
  if (format_of(value).rounded())
    return reinterpret_cast<const bfloat16*>(value.raw());
  return value.data<float>();
}

stored_results results_of(tensor& value) {
  if (format_of(value).rounded())
    return reinterpret_cast<bfloat16*>(value.raw());
  return value.data<float>();
}

bool fits_blocks(const shape& dims, std::int64_t block) noexcept {
  return dims.rank() == 4 && block > 1 && dims[1] % block == 0;
}

std::shared_ptr<const layout> channel_blocks(const shape& dims,
                                             const image_format& format) {
  if (format.block == 0)
    return nullptr;
  TROUPE_ASSERT(fits_blocks(dims, format.block));
  return std::make_shared<const blocked_layout>(dims, format);
}

void kept_format::set(const shape& dims, const image_format& format) {
  if (format == format_ && dims == dims_)
    return;
  layout_ = channel_blocks(dims, format);
  dims_ = dims;
  format_ = format;
}

tensor held_input(const kernel_context& ctx, std::string_view slot,
                  std::size_t index) {
  const variable& var = ctx.input_variable(slot, index);
  if (var.is_tensor() && block_of(var.as_tensor()) > 0)
    return var.as_tensor();
  return ctx.input(slot, index);
}

tensor stored_input(const kernel_context& ctx, std::string_view slot,
                    std::size_t index) {
  return as_floats(ctx, held_input(ctx, slot, index));
}

std::pair<tensor, tensor> alike_held_inputs(const kernel_context& ctx,
                                            std::string_view first,
                                            std::string_view second) {
  std::pair both{held_input(ctx, first), held_input(ctx, second)};
  if (block_of(both.first) != block_of(both.second)
      || both.first.dims() != both.second.dims())
    both = {ctx.input(first), ctx.input(second)};
  return both;
}

std::pair<tensor, tensor> alike_inputs(const kernel_context& ctx,
                                       std::string_view first,
                                       std::string_view second) {
  const auto both = alike_held_inputs(ctx, first, second);
  return {as_floats(ctx, both.first), as_floats(ctx, both.second)};
}

bool is_per_channel(const shape& x, const shape& y, std::int64_t axis) {
  return y.rank() == 1 && axis == 1 && x.rank() == 4 && y[0] == x[1];
}

void add_to_channels(stored_results out, stored_values x, const float* bias,
                     const shape& dims, std::int64_t block) {
  const std::int64_t pixels = dims.numel(2, 4);
  const std::int64_t blocks = dims[1] / block;
  visit_alike(out, x, [&](auto* to, const auto* from) {
    for (std::int64_t i = 0; i < dims[0] * blocks; ++i) {
      const std::int64_t at = i * pixels * block;
      run_simd<add_to_pixels>(to + at, from + at, bias + i % blocks * block,
                              pixels, block);
    }
  });
}

void sum_channels(float* totals, const float* x, const shape& dims,
                  std::int64_t block) {
  const std::int64_t size = dims.numel(2, 4) * block;
  const std::int64_t blocks = dims[1] / block;
  std::vector<float> part(static_cast<std::size_t>(block));
  fill(totals, dims[1], 0.0f);
  for (std::int64_t i = 0; i < dims[0] * blocks; ++i) {
    sum_rows(part.data(), x + i * size, size / block, block);
    accumulate(totals + i % blocks * block, part.data(), 1.0f, block);
  }
}

} // namespace troupe::cpu
