// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/optimizer/row_gradient.hpp>
#include <troupe/kernels/cpu/optimizer/updated_tensor.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

namespace troupe::cpu {

namespace {

TROUPE_SIMD void sgd_loop(float* out, const float* p, const float* g, float lr,
                          std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = p[i] - lr * g[i];
}

// p -= lr g. Missing rows stay as they are. As in Paddle, a row that occurs
// twice takes two steps.
class sgd_kernel final : public kernel {
public:
  explicit sgd_kernel(precision factors) : grad_(factors) {}

  void run(kernel_context& ctx) override {
    const auto format = update_layout(ctx);
    auto [p, out] = updated(ctx, "Param", "ParamOut", format);
    const float lr = scalar_input(ctx, "LearningRate");
    grad_.read(ctx, p.dims(), format, repeated_rows::keep);
    const bool dense = grad_.is_dense();
    if (!dense)
      copy(out.data<float>(), p.data<float>(), p.numel());
    float* to = out.data<float>();
    const float* from = dense ? p.data<float>() : to;
    grad_.for_each_present(
      ctx, to, [&](std::int64_t at, const float* g, std::int64_t n) {
        sgd_loop(to + at, from + at, g, lr, n);
      });
    grad_.clear();
  }

private:
  row_gradient grad_;
};

} // namespace

std::unique_ptr<kernel> make_sgd(const attribute_map&,
                                 const kernel_options& options) {
  return std::make_unique<sgd_kernel>(options.factors);
}

} // namespace troupe::cpu
