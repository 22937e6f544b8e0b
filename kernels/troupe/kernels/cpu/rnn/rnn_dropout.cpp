// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/rnn/rnn_dropout.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/fill/philox_uniform.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/random.hpp>

#include <string>

namespace troupe::cpu {

namespace {

shape mask_dims(const rnn_sizes& sizes) {
  return {sizes.steps, sizes.batch, sizes.directions * sizes.hidden};
}

philox_sequence sequence_of(const kernel_context& ctx) {
  const auto& step = ctx.step();
  if (const auto seed = ctx.attributes().get_int("seed", 0); seed != 0)
    return {step.seed, static_cast<std::uint32_t>(seed), step.step};
  const std::string name(ctx.output_name("Out"));
  return {step.seed, stable_hash(name.c_str()), step.step};
}

} // namespace

rnn_dropout::rnn_dropout(const attribute_map& attributes)
  : probability_(attributes.get_float("dropout_prob", 0.0f)),
    drops_(probability_ != 0.0f && attributes.get_int("num_layers", 1) > 1
           && !attributes.get_bool("is_test", false)) {
  if (!(probability_ >= 0.0f && probability_ <= 1.0f))
    throw error(errc::invalid_argument,
                "attribute dropout_prob is not in [0, 1]");
}

void rnn_dropout::draw(kernel_context& ctx, const rnn_sizes& sizes) {
  const shape dims = mask_dims(sizes);
  mask_ = ctx.has_output("DropoutState")
            ? ctx.output("DropoutState", dims, dtype::uint8)
            : tensor::make(ctx.on().memory(), dims, dtype::uint8);
  const auto& step = ctx.step();
  const bool sharded = step.shard_samples == sizes.batch;
  const std::int64_t samples = sharded ? step.batch_samples : sizes.batch;
  const std::int64_t first = sharded ? step.first_sample : 0;
  const auto sequence = sequence_of(ctx);
  for (std::int64_t i = 0; i < sizes.steps; ++i)
    draw_mask(
      sequence, static_cast<std::uint64_t>((i * samples + first) * dims[2]),
      probability_, mask_.data<std::uint8_t>() + i * sizes.batch * dims[2],
      sizes.batch * dims[2]);
}

void rnn_dropout::read(const kernel_context& ctx, const rnn_sizes& sizes) {
  mask_ = ctx.input("DropoutState");
  require_type("DropoutState", mask_.type(), dtype::uint8);
  require_shape("DropoutState", mask_.dims(), mask_dims(sizes));
}

void rnn_dropout::apply(float* rows) const {
  const float factor = probability_ < 1.0f ? 1.0f / (1.0f - probability_) : 0;
  const auto* mask = mask_.data<std::uint8_t>();
  for (std::int64_t i = 0; i < mask_.numel(); ++i)
    rows[i] = mask[i] != 0 ? rows[i] * factor : 0.0f;
}

} // namespace troupe::cpu
