// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/random.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::cpu {

namespace {

shape shape_attribute(const kernel_context& ctx) {
  const shape dims(ctx.attributes().get_ints("shape", {}));
  if (dims.has_unknown())
    throw error(errc::invalid_argument,
                "attribute shape " + to_string(dims) + " has unknown extents");
  return dims;
}

// The op's own sequence; the attribute seed, if any, replaces the run's.
philox generator(const kernel_context& ctx) {
  const std::int64_t own = ctx.attributes().get_int("seed", 0);
  const auto seed =
    own != 0 ? static_cast<std::uint64_t>(own) : ctx.step().seed;
  const std::string name(ctx.output_name("Out"));
  return {seed, stable_hash(name.c_str()), 0};
}

// Draws float32; a program that asks for another dtype gets a cast.
template <class Draw>
void draw_all(kernel_context& ctx, Draw draw) {
  const dtype type = dtype_attribute(ctx.attributes(), "dtype", dtype::float32);
  const shape dims = shape_attribute(ctx);
  const bool plain = type == dtype::float32;
  tensor out = plain ? float_output(ctx, "Out", dims)
                     : tensor::make(ctx.on().memory(), dims, dtype::float32);
  const philox random = generator(ctx);
  std::uint64_t index = 0;
  for (float& value : out.values<float>())
    value = draw(random, index++);
  if (!plain)
    ctx.output_variable("Out").set(cast(out, type, ctx.on().memory()));
}

} // namespace

void run_uniform_random(kernel_context& ctx) {
  const float low = ctx.attributes().get_float("min", -1.0f);
  const float high = ctx.attributes().get_float("max", 1.0f);
  draw_all(ctx, [=](const philox& random, std::uint64_t i) {
    return low + (high - low) * random.uniform(i);
  });
}

void run_gaussian_random(kernel_context& ctx) {
  const float mean = ctx.attributes().get_float("mean", 0.0f);
  const float deviation = ctx.attributes().get_float("std", 1.0f);
  draw_all(ctx, [=](const philox& random, std::uint64_t i) {
    return mean + deviation * random.normal(i);
  });
}

void run_truncated_gaussian_random(kernel_context& ctx) {
  const float mean = ctx.attributes().get_float("mean", 0.0f);
  const float deviation = ctx.attributes().get_float("std", 1.0f);
  const auto count = static_cast<std::uint64_t>(shape_attribute(ctx).numel());
  draw_all(ctx, [=](const philox& random, std::uint64_t i) {
    // A number beyond two deviations is drawn again, `count` further on.
    float value = random.normal(i);
    for (std::uint64_t index = i; std::abs(value) > 2.0f;) {
      index += count;
      value = random.normal(index);
    }
    return mean + deviation * value;
  });
}

} // namespace troupe::cpu
