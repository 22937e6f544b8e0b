// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/plans/dropout_options.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/random.hpp>

#include <string>

namespace troupe {

dropout_options::dropout_options(const attribute_map& attributes)
  : probability(attributes.get_float("dropout_prob", 0.5f)),
    is_test(attributes.get_bool("is_test", false)) {
  const auto how =
    attributes.get_string("dropout_implementation", "downgrade_in_infer");
  upscales = how == "upscale_in_train";
  if (!upscales && how != "downgrade_in_infer")
    throw error(errc::invalid_argument,
                "attribute dropout_implementation is " + how);
  if (!(probability >= 0.0f && probability <= 1.0f))
    throw error(errc::invalid_argument,
                "attribute dropout_prob is not in [0, 1]");
}

float dropout_options::factor() const {
  if (is_test)
    return upscales ? 1.0f : 1.0f - probability;
  if (!upscales)
    return 1.0f;
  return probability == 1.0f ? 0.0f : 1.0f / (1.0f - probability);
}

std::uint32_t dropout_options::sequence(const kernel_context& ctx) {
  if (const auto seed = integer_of(ctx, "Seed", "seed", 0); seed != 0)
    return static_cast<std::uint32_t>(seed);
  return stable_hash(std::string(ctx.output_name("Out")).c_str());
}

std::uint64_t dropout_options::first_number(const kernel_context& ctx,
                                            const shape& dims) {
  const std::int64_t per_sample =
    dims.rank() == 0 ? 1 : dims.numel(1, dims.rank());
  return static_cast<std::uint64_t>(ctx.step().first_sample * per_sample);
}

} // namespace troupe
