// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <troupe/kernels/random.hpp>

namespace troupe::ref {

namespace {

// Srivastava et al., "Dropout", 2014. downgrade_in_infer multiplies by 1 - p
// in tests; upscale_in_train by 1 / (1 - p) in training.

struct options {
  float probability;
  bool test, upscale;

  explicit options(const kernel_context& ctx)
    : probability(ctx.attributes().get_float("dropout_prob", 0.5f)),
      test(ctx.attributes().get_bool("is_test", false)) {
    const auto how = ctx.attributes().get_string("dropout_implementation",
                                                 "downgrade_in_infer");
    upscale = how == "upscale_in_train";
    require(upscale || how == "downgrade_in_infer", errc::invalid_argument,
            "unknown dropout_implementation " + how);
    require(probability >= 0 && probability <= 1, errc::invalid_argument,
            "dropout_prob must be in [0, 1]");
  }

  /// The factor of elements that are kept.
  double factor() const {
    if (test)
      return upscale ? 1 : 1.0 - probability;
    if (!upscale)
      return 1;
    return probability == 1 ? 0 : 1 / (1.0 - probability);
  }
};

std::uint32_t stream_of(const kernel_context& ctx) {
  const auto seed = ctx.attributes().get_int("seed", 0);
  if (seed != 0)
    return static_cast<std::uint32_t>(seed);
  return stable_hash(std::string(ctx.output_name("Out")).c_str());
}

/// 1 for each element that is kept. Random numbers depend on an element's index
/// in the whole batch, so the mask does not depend on how samples are spread
/// over devices.
array draw_mask(const kernel_context& ctx, const shape& dims,
                float probability) {
  const philox random(ctx.step().seed, stream_of(ctx), ctx.step().step);
  array mask(dims);
  const auto per_sample = dims.rank() == 0 ? 1 : dims.numel(1, dims.rank());
  const auto first = ctx.step().first_sample * per_sample;
  for (std::int64_t i = 0; i < mask.size(); ++i) {
    const auto index = static_cast<std::uint64_t>(first + i);
    mask[i] = random.uniform(index) < probability ? 0 : 1;
  }
  return mask;
}

} // namespace

void dropout(kernel_context& ctx) {
  auto x = input(ctx, "X");
  const options o(ctx);
  const auto mask =
    o.test ? array(x.dims, 1) : draw_mask(ctx, x.dims, o.probability);
  for (std::int64_t i = 0; i < x.size(); ++i)
    x[i] = mask[i] == 0 ? 0 : x[i] * o.factor();
  const auto type = input_type(ctx, "X");
  output(ctx, "Out", x, type);
  output_if_present(ctx, "Mask", mask, dtype::uint8);
}

void dropout_grad(kernel_context& ctx) {
  auto d = input(ctx, "Out@GRAD");
  const auto type = input_type(ctx, "Out@GRAD");
  const options o(ctx);
  const auto mask = o.test ? array(d.dims, 1) : input(ctx, "Mask");
  require_same("Mask", mask.dims, d.dims);
  for (std::int64_t i = 0; i < d.size(); ++i)
    d[i] *= mask[i] * o.factor();
  output(ctx, "X@GRAD", d, type);
}

} // namespace troupe::ref
