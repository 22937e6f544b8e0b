// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/channel_blocks.hpp>

#include <troupe/kernels/cpu/layout_traffic.hpp>
#include <troupe/kernels/cpu/simd.hpp>
#include <troupe/kernels/cpu/vector_ops.hpp>

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

TROUPE_SIMD void add_to_pixels(float* out, const float* x, const float* bias,
                               std::int64_t pixels, std::int64_t block) {
  for (std::int64_t p = 0; p < pixels; ++p)
#pragma omp simd
    for (std::int64_t c = 0; c < block; ++c)
      out[p * block + c] = x[p * block + c] + bias[c];
}

class blocked_layout final : public layout {
public:
  blocked_layout(const shape& dims, std::int64_t block)
    : dims_(dims), block_(block) {}

  std::int64_t block() const noexcept { return block_; }

  std::size_t bytes() const noexcept override {
    return static_cast<std::size_t>(dims_.numel()) * sizeof(float);
  }

  bool equals(const layout& other) const noexcept override {
    const auto* same = dynamic_cast<const blocked_layout*>(&other);
    return same && same->block_ == block_ && same->dims_ == dims_;
  }

  std::string name() const override {
    return "nChw" + std::to_string(block_) + "c";
  }

  void to_plain(const tensor& source, tensor& target, stream*) const override {
    const std::int64_t pixels = dims_.numel(2, 4);
    const std::int64_t size = pixels * block_;
    const float* from = source.data<float>();
    float* to = target.data<float>();
    for (std::int64_t i = 0; i < dims_[0] * dims_[1] / block_; ++i)
      unblock(to + i * size, from + i * size, pixels, block_);
    add_layout_traffic(2 * bytes());
  }

private:
  shape dims_;
  std::int64_t block_;
};

bool same_format(const tensor& a, const std::shared_ptr<const layout>& b) {
  const auto& held = a.format();
  return held == b || (held && b && held->equals(*b));
}

// Equal layouts have equal shapes; all that lies in blocks is float32.
bool can_reuse(const variable& var,
               const std::shared_ptr<const layout>& format) {
  return var.is_tensor() && var.as_tensor()
         && same_format(var.as_tensor(), format)
         && !var.as_tensor().is_shared();
}

} // namespace

std::int64_t block_of(const tensor& value) noexcept {
  const auto* blocked =
    dynamic_cast<const blocked_layout*>(value.format().get());
  return blocked ? blocked->block() : 0;
}

bool fits_blocks(const shape& dims, std::int64_t block) noexcept {
  return dims.rank() == 4 && block > 1 && dims[1] % block == 0;
}

std::shared_ptr<const layout> channel_blocks(const shape& dims,
                                             std::int64_t block) {
  if (block == 0)
    return nullptr;
  TROUPE_ASSERT(fits_blocks(dims, block));
  return std::make_shared<const blocked_layout>(dims, block);
}

void kept_format::set(const shape& dims, std::int64_t block) {
  if (block == block_ && dims == dims_)
    return;
  format_ = channel_blocks(dims, block);
  dims_ = dims;
  block_ = block;
}

tensor stored_input(const kernel_context& ctx, std::string_view slot,
                    std::size_t index) {
  const variable& var = ctx.input_variable(slot, index);
  if (var.is_tensor() && block_of(var.as_tensor()) > 0)
    return var.as_tensor();
  return ctx.input(slot, index);
}

std::pair<tensor, tensor> alike_inputs(const kernel_context& ctx,
                                       std::string_view first,
                                       std::string_view second) {
  std::pair both{stored_input(ctx, first), stored_input(ctx, second)};
  if (!same_format(both.first, both.second.format()))
    both = {ctx.input(first), ctx.input(second)};
  return both;
}

tensor stored_output(const kernel_context& ctx, std::string_view slot,
                     const shape& dims, dtype type,
                     std::shared_ptr<const layout> format) {
  if (!format)
    return ctx.output(slot, dims, type);
  variable& var = ctx.output_variable(slot);
  if (can_reuse(var, format)) {
    tensor held = var.as_tensor();
    held.set_levels(nullptr);
    var.as_tensor().set_levels(nullptr);
    return held;
  }
  tensor made(dims, type, ctx.on().memory().allocate(format->bytes()), format);
  var.set(made);
  return made;
}

tensor output_like(const kernel_context& ctx, std::string_view slot,
                   const tensor& like) {
  return stored_output(ctx, slot, like.dims(), like.type(), like.format());
}

bool is_per_channel(const shape& x, const shape& y, std::int64_t axis) {
  return y.rank() == 1 && axis == 1 && x.rank() == 4 && y[0] == x[1];
}

void add_to_channels(float* out, const float* x, const float* bias,
                     const shape& dims, std::int64_t block) {
  const std::int64_t pixels = dims.numel(2, 4);
  const std::int64_t blocks = dims[1] / block;
  for (std::int64_t i = 0; i < dims[0] * blocks; ++i) {
    const std::int64_t at = i * pixels * block;
    add_to_pixels(out + at, x + at, bias + i % blocks * block, pixels, block);
  }
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
