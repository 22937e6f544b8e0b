// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/fill/filled_shape.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/random.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::cpu {

namespace {

// The op's own sequence. If attribute seed is set, it replaces the run's seed,
// and every step draws the same numbers.
philox generator(const kernel_context& ctx) {
  const std::int64_t own = ctx.attributes().get_int("seed", 0);
  const std::string name(ctx.output_name("Out"));
  const std::uint32_t stream = stable_hash(name.c_str());
  if (own != 0)
    return {static_cast<std::uint64_t>(own), stream, 0};
  return {ctx.step().seed, stream, ctx.step().step};
}

// Maps elements to numbers of the sequence. If an axis holds the samples of the
// batch, a device draws the numbers of its own samples: N devices draw what one
// would. Otherwise all devices draw the same numbers.
class element_numbers {
public:
  explicit element_numbers(const shape& dims)
    : all_(static_cast<std::uint64_t>(dims.numel())) {}

  element_numbers(const shape& dims, std::size_t axis, const step_info& step)
    : element_numbers(dims) {
    if (axis >= dims.rank() || dims[axis] != step.shard_samples)
      return;
    const auto inner = dims.numel(axis + 1, dims.rank());
    slice_ = static_cast<std::uint64_t>(dims[axis] * inner);
    whole_ = static_cast<std::uint64_t>(step.batch_samples * inner);
    first_ = static_cast<std::uint64_t>(step.first_sample * inner);
    if (slice_ > 0)
      all_ = all_ / slice_ * whole_;
  }

  std::uint64_t operator()(std::uint64_t i) const noexcept {
    return slice_ == 0 ? i : i / slice_ * whole_ + first_ + i % slice_;
  }
  /// How many numbers all devices draw together.
  std::uint64_t all() const noexcept { return all_; }

private:
  // elements per outer index: on this device, and in all
  std::uint64_t slice_ = 0;
  std::uint64_t whole_ = 0;
  std::uint64_t first_ = 0; // elements that devices before this one draw
  std::uint64_t all_;
};

element_numbers numbers_of(const kernel_context& ctx, const shape& dims) {
  // An extent that depends on the batch comes in a tensor.
  const bool dynamic =
    ctx.has_input("ShapeTensor") || ctx.has_input("ShapeTensorList");
  return dynamic ? element_numbers(dims, 0, ctx.step()) : element_numbers(dims);
}

dtype wanted_type(const kernel_context& ctx, dtype drawn) {
  return dtype_attribute(ctx.attributes(), "dtype", drawn);
}

// Draws all elements: element i is draws(generator)(numbers(i)), of type T.
// Each worker has its own callable. The result is Out itself unless the program
// asks for another dtype.
template <class T, class Draws>
tensor draw_all(kernel_context& ctx, const shape& dims,
                const element_numbers& numbers, Draws draws) {
  constexpr dtype drawn = dtype_of<T>;
  tensor out = wanted_type(ctx, drawn) == drawn
                 ? ctx.output("Out", dims, drawn)
                 : tensor::make(ctx.on().memory(), dims, drawn);
  const philox random = generator(ctx);
  T* values = out.data<T>();
  in_ranges(ctx, out.numel(), [&](std::int64_t first, std::int64_t count) {
    auto draw = draws(random);
    for (std::int64_t i = first; i < first + count; ++i)
      values[i] = draw(numbers(static_cast<std::uint64_t>(i)));
  });
  return out;
}

void give(kernel_context& ctx, const tensor& drawn) {
  const dtype type = wanted_type(ctx, drawn.type());
  if (type != drawn.type())
    ctx.output_variable("Out").set(cast(drawn, type, ctx.on().memory()));
}

// Sets elements 0, diag_step + 1, 2 (diag_step + 1)... to diag_val, diag_num of
// them.
void set_diagonal(const attribute_map& attributes, tensor& out) {
  const std::int64_t count = attributes.get_int("diag_num", 0);
  const std::int64_t between = attributes.get_int("diag_step", 0);
  const std::int64_t step = std::min(between, out.numel()) + 1;
  if (count <= 0)
    return;
  if (step <= 0 || (count - 1) > (out.numel() - 1) / step || out.numel() == 0)
    throw error(errc::invalid_argument,
                "diag_num " + std::to_string(count) + " with diag_step "
                  + std::to_string(between) + " does not fit into Out "
                  + to_string(out.dims()));
  for (std::int64_t i = 0; i < count; ++i)
    out.data<float>()[i * step] = attributes.get_float("diag_val", 1.0f);
}

void draw_uniform(kernel_context& ctx, const shape& dims,
                  const element_numbers& numbers) {
  const float low = ctx.attributes().get_float("min", -1.0f);
  const float high = ctx.attributes().get_float("max", 1.0f);
  const auto draws = [=](const philox& random) {
    block_reader<float> uniform(random, &philox::uniform_block);
    return
      [=](std::uint64_t i) mutable { return low + (high - low) * uniform(i); };
  };
  tensor out = draw_all<float>(ctx, dims, numbers, draws);
  set_diagonal(ctx.attributes(), out);
  give(ctx, out);
}

void draw_gaussian(kernel_context& ctx, const shape& dims,
                   const element_numbers& numbers) {
  const float mean = ctx.attributes().get_float("mean", 0.0f);
  const float deviation = ctx.attributes().get_float("std", 1.0f);
  const auto draws = [=](const philox& random) {
    block_reader<float> normal(random, &philox::normal_block);
    return
      [=](std::uint64_t i) mutable { return mean + deviation * normal(i); };
  };
  give(ctx, draw_all<float>(ctx, dims, numbers, draws));
}

element_numbers numbers_like_batch(const kernel_context& ctx,
                                   const shape& dims) {
  const auto& attributes = ctx.attributes();
  if (attributes.get_int("input_dim_idx", 0) != 0)
    return element_numbers(dims);
  const auto axis =
    normal_axis(attributes.get_int("output_dim_idx", 0), dims.rank(), "Out");
  return {dims, axis, ctx.step()};
}

} // namespace

void run_uniform_random(kernel_context& ctx) {
  const shape dims = filled_shape(ctx);
  draw_uniform(ctx, dims, numbers_of(ctx, dims));
}

void run_uniform_random_batch_size_like(kernel_context& ctx) {
  const shape dims = filled_shape_like_batch(ctx, false);
  draw_uniform(ctx, dims, numbers_like_batch(ctx, dims));
}

void run_gaussian_random(kernel_context& ctx) {
  const shape dims = filled_shape(ctx);
  draw_gaussian(ctx, dims, numbers_of(ctx, dims));
}

void run_gaussian_random_batch_size_like(kernel_context& ctx) {
  const shape dims = filled_shape_like_batch(ctx, false);
  draw_gaussian(ctx, dims, numbers_like_batch(ctx, dims));
}

void run_truncated_gaussian_random(kernel_context& ctx) {
  const float mean = ctx.attributes().get_float("mean", 0.0f);
  const float deviation = ctx.attributes().get_float("std", 1.0f);
  const shape dims = filled_shape(ctx);
  const auto numbers = numbers_of(ctx, dims);
  const auto draws = [=](const philox& random) {
    block_reader<float> normal(random, &philox::normal_block);
    return [=](std::uint64_t i) mutable {
      // A number beyond two deviations is replaced by a later one of the
      // sequence.
      float value = normal(i);
      for (std::uint64_t index = i; std::abs(value) > 2.0f;) {
        index += numbers.all();
        value = random.normal(index);
      }
      return mean + deviation * value;
    };
  };
  give(ctx, draw_all<float>(ctx, dims, numbers, draws));
}

// Source: Lemire, "Fast random integer generation in an interval", 2019,
// without the rejection: probabilities are off by less than 2^-32.
void run_randint(kernel_context& ctx) {
  const auto& attributes = ctx.attributes();
  const std::int64_t low = attributes.get_int("low", 0);
  const std::int64_t high = attributes.get_int("high", 0);
  const auto range =
    static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (low >= high || range > std::uint64_t{1} << 32)
    throw error(errc::invalid_argument,
                "randint draws from [" + std::to_string(low) + ", "
                  + std::to_string(high) + "): low must be less than high, by "
                  + "2^32 at most");
  const auto draws = [=](const philox& random) {
    block_reader<std::uint32_t> words(random, &philox::block);
    return [=](std::uint64_t i) mutable {
      return low + static_cast<std::int64_t>((words(i) * range) >> 32);
    };
  };
  const shape dims = filled_shape(ctx);
  give(ctx, draw_all<std::int64_t>(ctx, dims, numbers_of(ctx, dims), draws));
}

} // namespace troupe::cpu
