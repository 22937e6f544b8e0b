// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <troupe/kernels/random.hpp>

#include <cmath>
#include <cstdlib>

namespace troupe::ref {

namespace {

shape wanted_shape(const kernel_context& ctx) {
  return shape(ctx.attributes().get_ints("shape", {}));
}

dtype wanted_type(const kernel_context& ctx) {
  return from_paddle_type(ctx.attributes().get_int("dtype", 5));
}

/// The op's own sequence. If attribute seed is set, it replaces the run's seed,
/// and every step draws the same numbers.
philox generator(const kernel_context& ctx) {
  const auto own = ctx.attributes().get_int("seed", 0);
  const auto stream = stable_hash(std::string(ctx.output_name("Out")).c_str());
  if (own != 0)
    return {static_cast<std::uint64_t>(own), stream, 0};
  return {ctx.step().seed, stream, ctx.step().step};
}

/// Out[i] = draw(generator, i).
template <class Function>
void fill(kernel_context& ctx, Function draw) {
  const auto random = generator(ctx);
  array out(wanted_shape(ctx));
  for (std::int64_t i = 0; i < out.size(); ++i)
    out[i] = draw(random, static_cast<std::uint64_t>(i));
  output(ctx, "Out", out, wanted_type(ctx));
}

double constant(const kernel_context& ctx) {
  const auto text = ctx.attributes().get_string("str_value", "");
  if (text.empty())
    return ctx.attributes().get_float("value", 0);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  require(end == text.c_str() + text.size(), errc::invalid_argument,
          "str_value " + text + " is not a number");
  return value;
}

} // namespace

void fill_constant(kernel_context& ctx) {
  output(ctx, "Out", array(wanted_shape(ctx), constant(ctx)), wanted_type(ctx));
}

void uniform_random(kernel_context& ctx) {
  const double low = ctx.attributes().get_float("min", -1);
  const double high = ctx.attributes().get_float("max", 1);
  fill(ctx, [=](const philox& random, std::uint64_t i) {
    return low + (high - low) * random.uniform(i);
  });
}

void gaussian_random(kernel_context& ctx) {
  const double mean = ctx.attributes().get_float("mean", 0);
  const double deviation = ctx.attributes().get_float("std", 1);
  fill(ctx, [=](const philox& random, std::uint64_t i) {
    return mean + deviation * random.normal(i);
  });
}

void truncated_gaussian_random(kernel_context& ctx) {
  const double mean = ctx.attributes().get_float("mean", 0);
  const double deviation = ctx.attributes().get_float("std", 1);
  const auto count = static_cast<std::uint64_t>(wanted_shape(ctx).numel());
  fill(ctx, [=](const philox& random, std::uint64_t i) {
    // A number beyond two deviations is drawn again, `count` positions later.
    auto index = i;
    while (std::abs(random.normal(index)) > 2)
      index += count;
    return mean + deviation * random.normal(index);
  });
}

} // namespace troupe::ref
