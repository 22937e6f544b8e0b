// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/fill/philox_uniform.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/plans/dropout_options.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>

namespace troupe::cpu {

namespace {

TROUPE_SIMD void apply_mask(float* out, const float* x,
                            const std::uint8_t* mask, float factor,
                            std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = mask[i] != 0 ? x[i] * factor : 0.0f;
}

TROUPE_SIMD void scale_only(float* out, const float* x, float factor,
                            std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = x[i] * factor;
}

class dropout_kernel final : public kernel {
public:
  explicit dropout_kernel(const attribute_map& attributes)
    : options_(attributes) {}

  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "X");
    const std::int64_t n = x.numel();
    tensor out = float_output(ctx, "Out", x.dims());
    if (options_.is_test) {
      scale_only(out.data<float>(), x.data<float>(), options_.factor(), n);
      if (ctx.has_output("Mask"))
        std::fill_n(mask_output(ctx, x.dims()).data<std::uint8_t>(), n,
                    std::uint8_t{1});
      return;
    }
    tensor mask = mask_output(ctx, x.dims());
    draw(ctx, x.dims(), mask.data<std::uint8_t>());
    apply_mask(out.data<float>(), x.data<float>(), mask.data<std::uint8_t>(),
               options_.factor(), n);
  }

private:
  static tensor mask_output(kernel_context& ctx, const shape& dims) {
    if (ctx.has_output("Mask"))
      return ctx.output("Mask", dims, dtype::uint8);
    return tensor::make(ctx.on().memory(), dims, dtype::uint8);
  }

  // Writes 1 for each element that is kept.
  void draw(const kernel_context& ctx, const shape& dims,
            std::uint8_t* mask) const {
    draw_mask(
      {ctx.step().seed, dropout_options::sequence(ctx), ctx.step().step},
      dropout_options::first_number(ctx, dims), options_.probability, mask,
      dims.numel());
  }

  dropout_options options_;
};

class dropout_grad_kernel final : public kernel {
public:
  explicit dropout_grad_kernel(const attribute_map& attributes)
    : options_(attributes) {}

  void run(kernel_context& ctx) override {
    const tensor dout = float_input(ctx, "Out@GRAD");
    const std::int64_t n = dout.numel();
    if (options_.is_test) {
      tensor dx = float_output(ctx, "X@GRAD", dout.dims());
      return scale_only(dx.data<float>(), dout.data<float>(), options_.factor(),
                        n);
    }
    const tensor mask = ctx.input("Mask");
    require_shape("Mask", mask.dims(), dout.dims());
    if (mask.type() != dtype::uint8)
      throw error(errc::dtype_mismatch, "Mask is not uint8");
    tensor dx = float_output(ctx, "X@GRAD", dout.dims());
    apply_mask(dx.data<float>(), dout.data<float>(), mask.data<std::uint8_t>(),
               options_.factor(), n);
  }

private:
  dropout_options options_;
};

} // namespace

std::unique_ptr<kernel> make_dropout(const attribute_map& attributes) {
  return std::make_unique<dropout_kernel>(attributes);
}

std::unique_ptr<kernel> make_dropout_grad(const attribute_map& attributes) {
  return std::make_unique<dropout_grad_kernel>(attributes);
}

} // namespace troupe::cpu
