// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/fill/philox_uniform.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/random.hpp>

#include <algorithm>
#include <string>

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

// Source: Srivastava et al., "Dropout", 2014. downgrade_in_infer multiplies by
// 1 - p in tests; upscale_in_train by 1 / (1 - p) in training.
class dropout_base : public kernel {
public:
  explicit dropout_base(const attribute_map& attributes)
    : probability_(attributes.get_float("dropout_prob", 0.5f)),
      test_(attributes.get_bool("is_test", false)) {
    const auto how =
      attributes.get_string("dropout_implementation", "downgrade_in_infer");
    upscale_ = how == "upscale_in_train";
    if (!upscale_ && how != "downgrade_in_infer")
      throw error(errc::invalid_argument,
                  "attribute dropout_implementation is " + how);
    if (!(probability_ >= 0.0f && probability_ <= 1.0f))
      throw error(errc::invalid_argument,
                  "attribute dropout_prob is not in [0, 1]");
  }

protected:
  // The factor of elements that are kept.
  float factor() const {
    if (test_)
      return upscale_ ? 1.0f : 1.0f - probability_;
    if (!upscale_)
      return 1.0f;
    return probability_ == 1.0f ? 0.0f : 1.0f / (1.0f - probability_);
  }

  float probability_;
  bool test_;
  bool upscale_ = false;
};

class dropout_kernel final : public dropout_base {
public:
  using dropout_base::dropout_base;
  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "X");
    const std::int64_t n = x.numel();
    tensor out = float_output(ctx, "Out", x.dims());
    if (test_) {
      scale_only(out.data<float>(), x.data<float>(), factor(), n);
      if (ctx.has_output("Mask"))
        std::fill_n(mask_output(ctx, x.dims()).data<std::uint8_t>(), n,
                    std::uint8_t{1});
      return;
    }
    tensor mask = mask_output(ctx, x.dims());
    draw(ctx, x.dims(), mask.data<std::uint8_t>());
    apply_mask(out.data<float>(), x.data<float>(), mask.data<std::uint8_t>(),
               factor(), n);
  }

private:
  static tensor mask_output(kernel_context& ctx, const shape& dims) {
    if (ctx.has_output("Mask"))
      return ctx.output("Mask", dims, dtype::uint8);
    return tensor::make(ctx.on().memory(), dims, dtype::uint8);
  }

  std::uint32_t sequence(const kernel_context& ctx) const {
    if (const auto seed = integer_of(ctx, "Seed", "seed", 0); seed != 0)
      return static_cast<std::uint32_t>(seed);
    return stable_hash(std::string(ctx.output_name("Out")).c_str());
  }

  // Writes 1 for each element that is kept. Random numbers depend on an
  // element's index in the whole batch, so masks do not depend on how samples
  // are spread over devices.
  void draw(const kernel_context& ctx, const shape& dims,
            std::uint8_t* mask) const {
    const std::int64_t per_sample =
      dims.rank() == 0 ? 1 : dims.numel(1, dims.rank());
    const auto first =
      static_cast<std::uint64_t>(ctx.step().first_sample * per_sample);
    draw_mask({ctx.step().seed, sequence(ctx), ctx.step().step}, first,
              probability_, mask, dims.numel());
  }
};

class dropout_grad_kernel final : public dropout_base {
public:
  using dropout_base::dropout_base;
  void run(kernel_context& ctx) override {
    const tensor dout = float_input(ctx, "Out@GRAD");
    const std::int64_t n = dout.numel();
    if (test_) {
      tensor dx = float_output(ctx, "X@GRAD", dout.dims());
      return scale_only(dx.data<float>(), dout.data<float>(), factor(), n);
    }
    const tensor mask = ctx.input("Mask");
    require_shape("Mask", mask.dims(), dout.dims());
    if (mask.type() != dtype::uint8)
      throw error(errc::dtype_mismatch, "Mask is not uint8");
    tensor dx = float_output(ctx, "X@GRAD", dout.dims());
    apply_mask(dx.data<float>(), dout.data<float>(), mask.data<std::uint8_t>(),
               factor(), n);
  }
};

} // namespace

std::unique_ptr<kernel> make_dropout(const attribute_map& attributes) {
  return std::make_unique<dropout_kernel>(attributes);
}

std::unique_ptr<kernel> make_dropout_grad(const attribute_map& attributes) {
  return std::make_unique<dropout_grad_kernel>(attributes);
}

} // namespace troupe::cpu
