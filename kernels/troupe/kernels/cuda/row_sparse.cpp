// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/row_sparse.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/cuda/queue_parts.hpp>

#include <string>
#include <utility>

namespace troupe::cuda {

namespace {

shape with_height(shape dims, std::int64_t height) {
  dims[0] = height;
  return dims;
}

void require_entries(std::string_view slot, const selected_rows& value,
                     const shape& dims) {
  const auto entries = entries_of(value);
  require_type(slot, value.values.type(), dtype::float32);
  if (dims.rank() == 0 || value.height != dims[0]
      || value.values.numel() != entries * dims.numel(1, dims.rank()))
    throw_shapes(slot, value.values.dims(), "Param", dims,
                 "the rows are not rows of the parameter");
}

/// Sets Out to the rows of X with values that `compute` queues.
template <class Compute>
void with_other_values(kernel_context& ctx, Compute compute) {
  const auto& x = ctx.input_variable("X").as_rows();
  require_type("X", x.values.type(), dtype::float32);
  auto made =
    make_rows(ctx.on().memory(), entries_of(x), x.height, x.values.dims());
  auto& queue = stream_of(ctx.queue());
  queue_copy(queue, x.numbers, made.numbers);
  compute(queue, x.values, made.values);
  ctx.output_variable("Out").set(std::move(made));
}

} // namespace

std::int64_t entries_of(const selected_rows& value) {
  return value.numbers.numel();
}

selected_rows make_rows(arena& memory, std::int64_t entries,
                        std::int64_t height, const shape& like) {
  return {{},
          height,
          tensor::make(memory, with_height(like, entries), dtype::float32),
          tensor::make(memory, {entries}, dtype::int64)};
}

void queue_rows(cuda_stream& queue, const selected_rows& from,
                selected_rows& to, std::int64_t first) {
  const auto entries = entries_of(from);
  if (entries == 0)
    return;
  const auto part = [&](const tensor& source, tensor& target) {
    const auto bytes = source.bytes() / static_cast<std::size_t>(entries);
    if (bytes > 0)
      queue.copy(target.raw() + static_cast<std::size_t>(first) * bytes,
                 source.raw(), source.bytes());
  };
  part(from.numbers, to.numbers);
  part(from.values, to.values);
}

linked_rows::linked_rows(kernel_context& ctx, std::string_view slot,
                         const selected_rows& value, const shape& dims,
                         std::int64_t left_out)
  : height_(value.height) {
  require_entries(slot, value, dims);
  const auto count = entries_of(value);
  auto& memory = ctx.on().memory();
  next_ = tensor::make(memory, {count}, dtype::int32);
  is_first_ = tensor::make(memory, {count}, dtype::int32);
  entries_ = {value.numbers.data<std::int64_t>(),
              next_.data<std::int32_t>(),
              is_first_.data<std::int32_t>(),
              value.values.data<float>(),
              count,
              dims.numel(1, dims.rank())};
  stream_of(ctx.queue())
    .run_for_each<link_rows>(
      count, {entries_.numbers, next_.data<std::int32_t>(),
              is_first_.data<std::int32_t>(), count, height_, left_out});
}

all_rows linked_rows::all(kernel_context& ctx) {
  auto& queue = stream_of(ctx.queue());
  first_ = tensor::make(ctx.on().memory(), {height_}, dtype::int32);
  auto* const first = first_.data<std::int32_t>();
  queue.run_for_each<fill<std::int32_t>>(height_, {first, height_, -1});
  queue.run_for_each<find_rows>(entries_.count, {entries_, first});
  return {entries_, first, height_ * entries_.width};
}

selected_rows merged_rows(kernel_context& ctx, std::string_view slot,
                          const selected_rows& value) {
  const auto dims = with_height(value.values.dims(), value.height);
  const linked_rows links{ctx, slot, value, dims};
  const auto& from = links.entries();
  auto merged = make_rows(ctx.on().memory(), from.count, value.height, dims);
  stream_of(ctx.queue())
    .run_for_each<merge_entries>(
      from.count * from.width,
      {from, merged.numbers.data<std::int64_t>(), merged.values.data<float>()});
  return merged;
}

// -- ops ----------------------------------------------------------------------

void run_merge_rows(kernel_context& ctx) {
  ctx.output_variable("Out").set(
    merged_rows(ctx, "X", ctx.input_variable("X").as_rows()));
}

// Entries that are no rows have the value 0.
void run_row_values(kernel_context& ctx) {
  const auto& x = ctx.input_variable("X").as_rows();
  auto out = ctx.output("Out", x.values.dims(), x.values.type());
  queue_copy(stream_of(ctx.queue()), x.values, out);
}

void assign_rows(kernel_context& ctx) {
  with_other_values(ctx, queue_copy);
}

void scale_rows(kernel_context& ctx, float factor, float bias) {
  if (bias != 0)
    throw error(errc::unsupported_op,
                "scale with a bias has no kernel for row-sparse values on CUDA "
                "devices");
  with_other_values(
    ctx, [&](cuda_stream& queue, const tensor& from, tensor& to) {
      queue.run_for_each<scale>(
        from.numel(),
        {from.data<float>(), to.data<float>(), from.numel(), factor, 0});
    });
}

void multiply_rows(kernel_context& ctx) {
  const auto factor = float_input(ctx, "Y");
  if (factor.numel() != 1)
    throw_shape("Y", factor.dims(), "expected one element");
  with_other_values(
    ctx, [&](cuda_stream& queue, const tensor& from, tensor& to) {
      const auto count = from.numel();
      queue.run_for_each<combine_repeated<multiply_function>>(
        count, {from.data<float>(), factor.data<float>(), to.data<float>(),
                count, pairing{1, {count}, {1}, {0}}});
    });
}

// All rows of all terms, each once.
void sum_of_rows(kernel_context& ctx) {
  const auto terms = ctx.num_inputs("X");
  const auto& first = ctx.input_variable("X").as_rows();
  std::int64_t entries = 0;
  for (std::size_t i = 0; i < terms; ++i) {
    const auto& x = ctx.input_variable("X", i).as_rows();
    require_entries("X", x, with_height(first.values.dims(), first.height));
    entries += entries_of(x);
  }
  auto joined =
    make_rows(ctx.on().memory(), entries, first.height, first.values.dims());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < terms; ++i) {
    const auto& x = ctx.input_variable("X", i).as_rows();
    queue_rows(stream_of(ctx.queue()), x, joined, at);
    at += entries_of(x);
  }
  ctx.output_variable("Out").set(merged_rows(ctx, "X", joined));
}

void add_rows(kernel_context& ctx, const selected_rows& x, tensor& to) {
  const linked_rows links{ctx, "X", x, to.dims()};
  const auto present = links.present();
  stream_of(ctx.queue())
    .run_for_each<sum_rows>(present.count,
                            {links.entries(), to.data<float>(), true});
}

} // namespace troupe::cuda
