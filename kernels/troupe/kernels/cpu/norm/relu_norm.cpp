// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/norm/relu_norm.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/elementwise/stored_op.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace troupe::cpu {

namespace {

// Comparisons are those of the op relu, so that NaN stays NaN.

TROUPE_SIMD void relu(float* y, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

TROUPE_SIMD void add_relu(float* y, const float* z, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float sum = y[i] + z[i];
    y[i] = sum < 0.0f ? 0.0f : sum;
  }
}

// dy where y is positive, else 0.
struct relu_gradient {
  TROUPE_INLINE static float apply(float y, float dy) {
    return y > 0.0f ? dy : 0.0f;
  }
};

// z: null if there is none.
void finish(float* y, const float* z, std::int64_t n) {
  z ? add_relu(y, z, n) : relu(y, n);
}

// The values of channels from `c` on.
block_norm at_channel(const block_norm& all, std::int64_t c) {
  return {all.mean + c, all.factor + c, all.bias + c};
}
block_factors at_channel(const block_factors& all, std::int64_t c) {
  return {all.mean + c, all.dy_factor + c, all.x_factor + c, all.offset + c};
}

// Elements that are summed in float: as in blocked_statistics.cpp.
constexpr std::int64_t chunk = 256;
constexpr std::int64_t widest = 16;

// The fused loops over one part of the images: some pixels of a block of
// channels, or a whole plane of one channel. A part stays in the cache between
// the single loops. Values per channel are those of the part.
class part_loops {
public:
  // Plain images must have more than one pixel.
  explicit part_loops(const channel_view& v)
    : view_(v), blocks_(v.block > 0 ? &block_loops_of(v.block) : nullptr),
      channels_(std::max<std::int64_t>(1, v.block)) {}

  std::int64_t channels() const { return channels_; }
  // How many elements `scratch` below needs.
  std::int64_t scratch_elements() const { return blocks_ ? 0 : view_.pixels; }

  // Calls `use(channel)` with the first channel of each block, or with each
  // channel.
  template <class Use>
  void for_each_channel(Use use) const {
    for (std::int64_t c = 0; c < view_.channels; c += channels_)
      use(c);
  }

  // Calls `use(offset, pixels)` for each part of the channels from `c` on.
  template <class Use>
  void for_each_part(std::int64_t c, Use use) const {
    const std::int64_t step = blocks_ ? chunk : view_.pixels;
    for (std::int64_t n = 0; n < view_.samples; ++n)
      for (std::int64_t p = 0; p < view_.pixels; p += step)
        use(view_.at(n, c) + p * channels_, std::min(step, view_.pixels - p));
  }

  // `z` may be null.
  void affine_relu(stored_results y, stored_values x, stored_values z,
                   std::int64_t n, const block_norm& norm) const {
    if (blocks_)
      return blocks_->affine_relu(y.data(), plane_at(x), plane_at(z), n, norm);
    channel_affine({1, 1, n}, y, x, norm.mean, norm.factor, norm.bias);
    finish(y.floats(), z.floats(), n);
  }

  void gradient_sums(stored_values x, stored_values dy, std::int64_t n,
                     const block_norm& norm, float* scratch, float* dot,
                     float* total) const {
    if (blocks_)
      return blocks_->relu_gradient_sums(plane_at(x), plane_at(dy), n, norm,
                                         dot, total);
    mask(scratch, x.floats(), dy.floats(), n, norm);
    channel_gradient_sums({1, 1, n}, x, scratch, norm.mean, dot, total);
  }

  void combine(stored_results dx, stored_values dy, stored_values x,
               std::int64_t n, const block_norm& norm,
               const block_factors& with, float* scratch) const {
    if (blocks_)
      return blocks_->relu_combine(dx.data(), plane_at(dy), plane_at(x), n,
                                   norm, with);
    mask(scratch, x.floats(), dy.floats(), n, norm);
    channel_combine({1, 1, n}, dx, scratch, x, with.mean, with.dy_factor,
                    with.x_factor, with.offset);
  }

private:
  // dy where the normalized x is positive, else 0.
  static void mask(float* masked, const float* x, const float* dy,
                   std::int64_t n, const block_norm& norm) {
    channel_affine({1, 1, n}, masked, x, norm.mean, norm.factor, norm.bias);
    apply_stored<relu_gradient>(masked, masked, dy, n);
  }

  channel_view view_;
  const block_loops* blocks_;
  std::int64_t channels_;
};

// The statistics and factors that the forward pass used.
class saved_norm {
public:
  saved_norm(const kernel_context& ctx, std::int64_t channels)
    : mean_(vector_input(ctx, "SavedMean", channels)),
      inverse_(vector_input(ctx, "SavedVariance", channels)),
      factor_(ctx.scratch(channels)),
      bias_(vector_input(ctx, "Bias", channels, 0.0f)) {
    const tensor scale = vector_input(ctx, "Scale", channels, 1.0f);
    multiply(factor_.data<float>(), scale.data<float>(), inverse_.data<float>(),
             channels);
  }

  /// For one element per channel: whether the forward pass passed it through.
  /// It does not if other devices' elements were normalized with it.
  bool passed() const {
    const auto zero = [](float value) { return value == 0.0f; };
    return std::ranges::all_of(mean_.values<float>(), zero)
           && std::ranges::all_of(inverse_.values<float>(), zero);
  }

  block_norm values() const {
    return {mean_.data<float>(), factor_.data<float>(), bias_.data<float>()};
  }

private:
  tensor mean_;
  tensor inverse_;
  tensor factor_;
  tensor bias_;
};

// dy where the normalized x is positive, else 0; for rows, in one go.
tensor masked_rows(kernel_context& ctx, const channel_view& v, stored_values x,
                   stored_values dy, const block_norm& norm) {
  tensor masked = ctx.scratch(v.samples * v.channels);
  auto* to = masked.data<float>();
  channel_affine(v, to, x, norm.mean, norm.factor, norm.bias);
  apply_stored<relu_gradient>(to, to, dy, masked.numel());
  return masked;
}

bool alike(const tensor& a, const tensor& b) {
  return block_of(a) == block_of(b);
}

tensor memory_like(kernel_context& ctx, const tensor& like) {
  return {like.dims(), like.type(), ctx.on().memory().allocate(like.bytes()),
          like.format()};
}

tensor plain_copy(kernel_context& ctx, const tensor& value) {
  if (value.is_plain())
    return value;
  tensor plain = tensor::make(ctx.on().memory(), value.dims(), value.type());
  value.format()->to_plain(value, plain, ctx.queue());
  return plain;
}

// Z in the layout of X if it has that, else plain. Empty if there is no Z.
tensor added(kernel_context& ctx, const tensor& x) {
  if (!ctx.has_input("Z"))
    return {};
  tensor z = held_input(ctx, "Z");
  if (!alike(x, z))
    z = ctx.input("Z");
  require_type("Z", z.type(), dtype::float32);
  require_shape("Z", z.dims(), x.dims());
  return z;
}

void write_plain(kernel_context& ctx, const tensor& normal, const tensor& z) {
  tensor y = ctx.output("Y", normal.dims(), dtype::float32);
  const tensor plain = plain_copy(ctx, normal);
  copy(y.data<float>(), plain.data<float>(), y.numel());
  finish(y.data<float>(), z.data<float>(), y.numel());
}

// dz = dy where y is positive, else 0; dz may be y.
void mask(kernel_context& ctx, tensor& dz, const tensor& y, const tensor& dy) {
  in_ranges(ctx, y.numel(), [&](std::int64_t first, std::int64_t n) {
    apply_stored<relu_gradient>(results_of(dz) + first, values_of(y) + first,
                                values_of(dy) + first, n);
  });
}

// Calls `use(loops, first channel of the part, offset of the part)`.
template <class Use>
void for_each_part(kernel_context& ctx, const channel_view& v, Use use) {
  in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t first) {
    use(part_loops(part), first, v.at(0, first));
  });
}

} // namespace

void require_relu(const attribute_map& attributes) {
  const auto type = attributes.get_string("act_type", "relu");
  if (type != "relu")
    throw error(errc::invalid_argument,
                "attribute act_type is \"" + type + "\", expected \"relu\"");
}

void write_affine_relu(kernel_context& ctx, const channel_view& v,
                       const tensor& x, const block_norm& norm) {
  const tensor z = added(ctx, x);
  if (z && !alike(x, z)) {
    tensor normal = memory_like(ctx, x);
    channel_affine(v, results_of(normal), values_of(x), norm.mean, norm.factor,
                   norm.bias);
    return write_plain(ctx, normal, z);
  }
  tensor y = output_like(ctx, "Y", x);
  const auto to = results_of(y);
  const auto from = values_of(x);
  const float* nothing = nullptr;
  const auto more = z ? values_of(z) : stored_values(nothing);
  if (v.has_rows()) {
    channel_affine(v, to, from, norm.mean, norm.factor, norm.bias);
    return finish(to.floats(), more.floats(), y.numel());
  }
  for_each_part(
    ctx, v,
    [&](const part_loops& loops, std::int64_t first, std::int64_t offset) {
      loops.for_each_channel([&](std::int64_t c) {
        loops.for_each_part(c, [&](std::int64_t at, std::int64_t n) {
          at += offset;
          loops.affine_relu(to + at, from + at, z ? more + at : more, n,
                            at_channel(norm, first + c));
        });
      });
    });
}

void write_affine_relu_again(kernel_context& ctx, const channel_view& v,
                             const tensor& x) {
  const saved_norm saved(ctx, v.channels);
  if (v.samples * v.pixels <= 1 && saved.passed())
    return write_relu(ctx, x);
  write_affine_relu(ctx, v, x, saved.values());
}

void write_relu(kernel_context& ctx, const tensor& x) {
  const tensor z = added(ctx, x);
  if (z && !alike(x, z))
    return write_plain(ctx, x, z);
  tensor y = output_like(ctx, "Y", x);
  tensor sum = ctx.scratch(x.numel());
  tensor more = ctx.scratch(z ? x.numel() : 0);
  copy_stored(sum.data<float>(), values_of(x), x.numel());
  if (z)
    copy_stored(more.data<float>(), values_of(z), x.numel());
  finish(sum.data<float>(), z ? more.data<float>() : nullptr, x.numel());
  copy_stored(results_of(y), sum.data<float>(), x.numel());
}

void relu_gradient_sums(kernel_context& ctx, const channel_view& v,
                        stored_values x, stored_values dy, float* dot,
                        float* total) {
  const saved_norm saved(ctx, v.channels);
  const auto norm = saved.values();
  if (v.has_rows()) {
    const tensor masked = masked_rows(ctx, v, x, dy, norm);
    return channel_gradient_sums(v, x, masked.data<float>(), norm.mean, dot,
                                 total);
  }
  for_each_part(
    ctx, v,
    [&](const part_loops& loops, std::int64_t first, std::int64_t offset) {
      tensor scratch = ctx.scratch(loops.scratch_elements());
      const auto channels = static_cast<std::size_t>(loops.channels());
      loops.for_each_channel([&](std::int64_t c) {
        std::array<double, widest> dots{}, totals{};
        loops.for_each_part(c, [&](std::int64_t at, std::int64_t n) {
          at += offset;
          std::array<float, widest> part_dots, part_totals;
          loops.gradient_sums(x + at, dy + at, n, at_channel(norm, first + c),
                              scratch.data<float>(), part_dots.data(),
                              part_totals.data());
          for (std::size_t i = 0; i < channels; ++i) {
            dots[i] += static_cast<double>(part_dots[i]);
            totals[i] += static_cast<double>(part_totals[i]);
          }
        });
        std::copy_n(dots.begin(), channels, dot + first + c);
        std::copy_n(totals.begin(), channels, total + first + c);
      });
    });
}

void relu_combine(kernel_context& ctx, const channel_view& v, stored_results dx,
                  stored_values dy, stored_values x,
                  const block_factors& with) {
  const saved_norm saved(ctx, v.channels);
  const auto norm = saved.values();
  if (v.has_rows()) {
    const tensor masked = masked_rows(ctx, v, x, dy, norm);
    return channel_combine(v, dx, masked.data<float>(), x, with.mean,
                           with.dy_factor, with.x_factor, with.offset);
  }
  for_each_part(
    ctx, v,
    [&](const part_loops& loops, std::int64_t first, std::int64_t offset) {
      tensor scratch = ctx.scratch(loops.scratch_elements());
      loops.for_each_channel([&](std::int64_t c) {
        loops.for_each_part(c, [&](std::int64_t at, std::int64_t n) {
          at += offset;
          loops.combine(dx + at, dy + at, x + at, n,
                        at_channel(norm, first + c),
                        at_channel(with, first + c), scratch.data<float>());
        });
      });
    });
}

tensor gradient_behind_relu(kernel_context& ctx, const tensor& x,
                            const tensor& dy) {
  tensor dx = memory_like(ctx, x);
  mask(ctx, dx, x, dy);
  return dx;
}

std::pair<tensor, tensor> images_behind_sum(kernel_context& ctx,
                                            bool takes_blocks) {
  const auto [y, dy] = takes_blocks
                         ? alike_held_inputs(ctx, "Y", "Y@GRAD")
                         : std::pair{ctx.input("Y"), ctx.input("Y@GRAD")};
  require_type("Y", y.type(), dtype::float32);
  require_type("Y@GRAD", dy.type(), dtype::float32);
  require_shape("Y@GRAD", dy.dims(), y.dims());
  tensor dz = ctx.has_output("Z@GRAD") ? output_like(ctx, "Z@GRAD", y)
                                       : memory_like(ctx, y);
  mask(ctx, dz, y, dy);
  const tensor x = held_input(ctx, "X");
  if (alike(x, dz))
    return {x, dz};
  return {ctx.input("X"), plain_copy(ctx, dz)};
}

} // namespace troupe::cpu
