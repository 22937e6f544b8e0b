// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/fused_batch_norm.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/batch_norm_kernels.hpp>
#include <troupe/kernels/cpu/block_loops.hpp>
#include <troupe/kernels/cpu/channel_blocks.hpp>
#include <troupe/kernels/cpu/in_ranges.hpp>
#include <troupe/kernels/cpu/simd.hpp>
#include <troupe/kernels/cpu/stored_op.hpp>
#include <troupe/kernels/cpu/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

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

// dy where y is positive.
struct relu_gradient {
  TROUPE_INLINE static float apply(float y, float dy) {
    return y > 0.0f ? dy : 0.0f;
  }
};

// z: null if there is none.
void finish(float* y, const float* z, std::int64_t n) {
  z ? add_relu(y, z, n) : relu(y, n);
}

// Pixels of a block that are summed up in float, as in blocked_statistics.cpp.
constexpr std::int64_t chunk = 256;
constexpr std::int64_t widest = 16;

// The fused loops over a part of images: some pixels of a block of channels, or
// all of one channel, where the single ops' loops stay in the cache. Channels'
// values are the part's.
class part_loops {
public:
  // Plain images have more than one pixel.
  explicit part_loops(const channel_view& v)
    : view_(v), blocks_(v.block > 0 ? &block_loops_of(v.block) : nullptr),
      channels_(std::max<std::int64_t>(1, v.block)) {}

  std::int64_t channels() const { return channels_; }
  // Elements of `scratch` below.
  std::int64_t scratch_elements() const { return blocks_ ? 0 : view_.pixels; }

  // Calls `use(channel, offset, pixels)`, samples inside of channels.
  template <class Use>
  void for_each(Use use) const {
    const std::int64_t step = blocks_ ? chunk : view_.pixels;
    for (std::int64_t c = 0; c < view_.channels; c += channels_)
      for (std::int64_t n = 0; n < view_.samples; ++n)
        for (std::int64_t p = 0; p < view_.pixels; p += step)
          use(c, view_.at(n, c) + p * channels_,
              std::min(step, view_.pixels - p));
  }

  // `z` may be of nothing.
  void affine_relu(stored_results y, stored_values x, stored_values z,
                   std::int64_t n, const block_norm& norm) const {
    if (blocks_)
      return blocks_->affine_relu(y.data(), plane_at(x), plane_at(z), n, norm);
    channel_affine({1, 1, n}, y, x, norm.mean, norm.factor, norm.bias);
    finish(y.floats(), z.floats(), n);
  }

  void relu_gradient_sums(stored_values x, stored_values dy, std::int64_t n,
                          const block_norm& norm, float* scratch, float* dot,
                          float* total) const {
    if (blocks_)
      return blocks_->relu_gradient_sums(plane_at(x), plane_at(dy), n, norm,
                                         dot, total);
    mask(scratch, x.floats(), dy.floats(), n, norm);
    channel_gradient_sums({1, 1, n}, x, scratch, norm.mean, dot, total);
  }

  void relu_combine(stored_results dx, stored_values dy, stored_values x,
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
  // dy where what x is normalised to is positive.
  static void mask(float* masked, const float* x, const float* dy,
                   std::int64_t n, const block_norm& norm) {
    channel_affine({1, 1, n}, masked, x, norm.mean, norm.factor, norm.bias);
    apply_stored<relu_gradient>(masked, masked, dy, n);
  }

  channel_view view_;
  const block_loops* blocks_;
  std::int64_t channels_;
};

bool has_parts(const channel_view& v) {
  return v.block > 0 || v.pixels > 1;
}

void require_relu(const attribute_map& attributes) {
  const auto type = attributes.get_string("act_type", "relu");
  if (type != "relu")
    throw error(errc::invalid_argument,
                "attribute act_type is \"" + type + "\", expected \"relu\"");
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

class fused_batch_norm final : public batch_norm_kernel {
public:
  explicit fused_batch_norm(const attribute_map& attributes)
    : batch_norm_kernel(attributes) {
    require_relu(attributes);
  }

private:
  void write_normalized(kernel_context& ctx, const channel_view& v,
                        const tensor& x, const float* mean, const float* factor,
                        const float* bias) override {
    const tensor z = added(ctx, x);
    if (z && !alike(x, z)) {
      tensor normal = memory_like(ctx, x);
      channel_affine(v, results_of(normal), values_of(x), mean, factor, bias);
      return write_plain(ctx, normal, z);
    }
    tensor y = output_like(ctx, "Y", x);
    const auto to = results_of(y);
    const auto from = values_of(x);
    const float* nothing = nullptr;
    const auto more = z ? values_of(z) : stored_values(nothing);
    if (!has_parts(v)) {
      channel_affine(v, to, from, mean, factor, bias);
      return finish(to.floats(), more.floats(), y.numel());
    }
    in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t first) {
      const part_loops loops(part);
      loops.for_each([&](std::int64_t c, std::int64_t at, std::int64_t n) {
        c += first;
        at += v.at(0, first);
        loops.affine_relu(to + at, from + at, z ? more + at : more, n,
                          {mean + c, factor + c, bias + c});
      });
    });
  }

  void write_passed(kernel_context& ctx, const tensor& x) override {
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

  // Z in the layout of X if it lies so, or else plain; none without Z.
  static tensor added(kernel_context& ctx, const tensor& x) {
    if (!ctx.has_input("Z"))
      return {};
    tensor z = held_input(ctx, "Z");
    if (!alike(x, z))
      z = ctx.input("Z");
    require_type("Z", z.type(), dtype::float32);
    require_shape("Z", z.dims(), x.dims());
    return z;
  }

  static void write_plain(kernel_context& ctx, const tensor& normal,
                          const tensor& z) {
    tensor y = ctx.output("Y", normal.dims(), dtype::float32);
    const tensor plain = plain_copy(ctx, normal);
    copy(y.data<float>(), plain.data<float>(), y.numel());
    finish(y.data<float>(), z.data<float>(), y.numel());
  }
};

class fused_batch_norm_grad final : public batch_norm_grad_kernel {
public:
  fused_batch_norm_grad(const attribute_map& attributes, bool behind_sum)
    : batch_norm_grad_kernel(attributes), behind_sum_(behind_sum) {
    require_relu(attributes);
  }

private:
  std::pair<tensor, tensor> inputs(kernel_context& ctx) override {
    by_part_ = false;
    if (behind_sum_)
      return inputs_behind_sum(ctx);
    const auto both = batch_norm_grad_kernel::inputs(ctx);
    const auto& [x, dy] = both;
    require_type("X", x.type(), dtype::float32);
    require_type("Y@GRAD", dy.type(), dtype::float32);
    require_shape("Y@GRAD", dy.dims(), x.dims());
    const channel_view v = view_of(x);
    by_part_ = has_parts(v) && v.samples * v.pixels > 1;
    return by_part_ ? both : std::pair{x, behind_relu(ctx, v, x, dy)};
  }

  // The gradient of the sum is Z's, too.
  std::pair<tensor, tensor> inputs_behind_sum(kernel_context& ctx) const {
    const auto [y, dy] = takes_blocks()
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

  // Y@GRAD where Y is positive.
  tensor behind_relu(kernel_context& ctx, const channel_view& v,
                     const tensor& x, const tensor& dy) const {
    tensor y = memory_like(ctx, x);
    if (v.samples * v.pixels > 1) {
      const auto with = factors(ctx, v);
      channel_affine(v, results_of(y), values_of(x), with.mean.data<float>(),
                     with.factor.data<float>(), with.bias.data<float>());
    } else { // X was passed through
      copy_stored(results_of(y), values_of(x), x.numel());
    }
    mask(ctx, y, y, dy);
    return y;
  }

  // dz = dy where y is positive; dz may be y.
  static void mask(kernel_context& ctx, tensor& dz, const tensor& y,
                   const tensor& dy) {
    in_ranges(ctx, y.numel(), [&](std::int64_t first, std::int64_t n) {
      apply_stored<relu_gradient>(results_of(dz) + first, values_of(y) + first,
                                  values_of(dy) + first, n);
    });
  }

  void gradient_sums(kernel_context& ctx, const channel_view& v,
                     stored_values x, stored_values dy, const float* mean,
                     float* dot, float* total) override {
    if (!by_part_)
      return batch_norm_grad_kernel::gradient_sums(ctx, v, x, dy, mean, dot,
                                                   total);
    dots_.assign(static_cast<std::size_t>(v.channels), 0.0);
    totals_.assign(static_cast<std::size_t>(v.channels), 0.0);
    for_each_part(ctx, v,
                  [&](const part_loops& loops, std::int64_t c, std::int64_t at,
                      std::int64_t n, const block_norm& norm, float* scratch) {
                    std::array<float, widest> dots, totals;
                    loops.relu_gradient_sums(x + at, dy + at, n, norm, scratch,
                                             dots.data(), totals.data());
                    for (std::int64_t i = 0; i < loops.channels(); ++i) {
                      dots_[static_cast<std::size_t>(c + i)] +=
                        static_cast<double>(dots[static_cast<std::size_t>(i)]);
                      totals_[static_cast<std::size_t>(c + i)] +=
                        static_cast<double>(
                          totals[static_cast<std::size_t>(i)]);
                    }
                  });
    std::copy(dots_.begin(), dots_.end(), dot);
    std::copy(totals_.begin(), totals_.end(), total);
  }

  void combine(kernel_context& ctx, const channel_view& v, stored_results dx,
               stored_values dy, stored_values x, const float* mean,
               const float* dy_factor, const float* x_factor,
               const float* offset) override {
    if (!by_part_)
      return batch_norm_grad_kernel::combine(ctx, v, dx, dy, x, mean, dy_factor,
                                             x_factor, offset);
    for_each_part(ctx, v,
                  [&](const part_loops& loops, std::int64_t c, std::int64_t at,
                      std::int64_t n, const block_norm& norm, float* scratch) {
                    loops.relu_combine(
                      dx + at, dy + at, x + at, n, norm,
                      {mean + c, dy_factor + c, x_factor + c, offset + c},
                      scratch);
                  });
  }

  struct normal_factors {
    tensor mean;
    tensor factor;
    tensor bias;
  };

  // What the forward pass normalised with.
  static normal_factors factors(kernel_context& ctx, const channel_view& v) {
    const tensor scale = parameter(ctx, "Scale", v, 1.0f);
    tensor factor = ctx.scratch(v.channels);
    multiply(factor.data<float>(), scale.data<float>(),
             parameter(ctx, "SavedVariance", v).data<float>(), v.channels);
    return {parameter(ctx, "SavedMean", v), std::move(factor),
            parameter(ctx, "Bias", v, 0.0f)};
  }

  // Calls `use(loops, channel, offset, pixels, what these are normalised with,
  // scratch)`; workers share the channels.
  template <class Use>
  static void for_each_part(kernel_context& ctx, const channel_view& v,
                            Use use) {
    const auto with = factors(ctx, v);
    const float* mean = with.mean.data<float>();
    const float* factor = with.factor.data<float>();
    const float* bias = with.bias.data<float>();
    in_channel_parts(ctx, v, [&](const channel_view& part, std::int64_t first) {
      const part_loops loops(part);
      tensor scratch = ctx.scratch(loops.scratch_elements());
      loops.for_each([&](std::int64_t c, std::int64_t at, std::int64_t n) {
        c += first;
        use(loops, c, at + v.at(0, first), n,
            block_norm{mean + c, factor + c, bias + c}, scratch.data<float>());
      });
    });
  }

  bool behind_sum_;
  bool by_part_ = false; // dy is to be taken where Y is positive
  std::vector<double> dots_;
  std::vector<double> totals_;
};

} // namespace

std::unique_ptr<kernel> make_fused_batch_norm(const attribute_map& attributes) {
  return std::make_unique<fused_batch_norm>(attributes);
}

std::unique_ptr<kernel>
make_fused_batch_norm_grad(const attribute_map& attributes) {
  return std::make_unique<fused_batch_norm_grad>(attributes, false);
}

std::unique_ptr<kernel>
make_fused_batch_norm_add_grad(const attribute_map& attributes) {
  return std::make_unique<fused_batch_norm_grad>(attributes, true);
}

} // namespace troupe::cpu
