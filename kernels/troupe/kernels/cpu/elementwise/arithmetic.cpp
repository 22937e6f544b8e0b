// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/elementwise/elementwise_ops.hpp>
#include <troupe/kernels/cpu/elementwise/stored_op.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/cpu/optimizer/merged_rows.hpp>
#include <troupe/kernels/cpu/sequence/tensor_arrays.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>
#include <troupe/kernels/shape_only.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

void require_float(const tensor& value) {
  if (value.type() != dtype::float32)
    throw error(errc::dtype_mismatch, "X is "
                                        + std::string(to_string(value.type()))
                                        + ", expected float32");
}

// Out shares X's memory; nothing is copied.
void pass(kernel_context& ctx) {
  const variable& x = ctx.input_variable("X");
  variable& out = ctx.output_variable("Out");
  if (&x == &out)
    return;
  if (!x.is_rows())
    return out.set(ctx.input("X").share());
  const selected_rows& rows = x.as_rows();
  out.set(selected_rows{rows.rows, rows.height, rows.values.share()});
}

// For integers, the attributes are truncated to integers.
template <class T>
void scale_numbers(const tensor& x, tensor& out, double scale, double bias,
                   bool bias_after_scale) {
  const T factor = number_as<T>(scale);
  const T added = number_as<T>(bias);
  const auto from = x.values<T>();
  T* to = out.data<T>();
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i] = elementwise::add::apply(
      elementwise::multiply::apply(
        factor,
        bias_after_scale ? from[i] : elementwise::add::apply(from[i], added)),
      bias_after_scale ? added : T(0));
}

void scale_rows(kernel_context& ctx, float scale, float bias) {
  const selected_rows& x = ctx.input_variable("X").as_rows();
  require_float(x.values);
  selected_rows out{
    x.rows, x.height,
    tensor::make(ctx.on().memory(), x.values.dims(), dtype::float32)};
  scale_add(out.values.data<float>(), x.values.data<float>(), scale, bias,
            x.values.numel());
  ctx.output_variable("Out").set(std::move(out));
}

} // namespace

void run_scale(kernel_context& ctx) {
  const auto& attributes = ctx.attributes();
  const double factor = number_input(ctx, "ScaleTensor", "scale", 1.0f);
  const auto scale = static_cast<float>(factor);
  const float bias = attributes.get_float("bias", 0.0f);
  const bool after = attributes.get_bool("bias_after_scale", true);
  if (scale == 1.0f && bias == 0.0f)
    return pass(ctx);
  if (ctx.input_variable("X").is_rows())
    return scale_rows(ctx, scale, after ? bias : bias * scale);
  const tensor x = ctx.input("X");
  for_number_type("X", x.type(), [&]<class T>(T) {
    tensor out = ctx.output("Out", x.dims(), x.type());
    if constexpr (std::is_same_v<T, float>)
      in_ranges(ctx, x.numel(), [&](std::int64_t first, std::int64_t n) {
        scale_add(out.data<float>() + first, x.data<float>() + first, scale,
                  after ? bias : bias * scale, n);
      });
    else
      scale_numbers<T>(x, out, factor, static_cast<double>(bias), after);
  });
}

// The op that graph's pass shape_inputs inserts.
void run_shape_of(kernel_context& ctx) {
  const auto& x = ctx.input_variable("X");
  ctx.output_variable("Out").set(
    shape_only(x.is_tensor() ? x.as_tensor() : ctx.input("X")));
}

void run_assign(kernel_context& ctx) {
  if (const auto& x = ctx.input_variable("X"); x.is_array()) {
    ctx.output_variable("Out") = share_value(x);
    return;
  }
  pass(ctx);
}

void run_cast(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const dtype type = dtype_attribute(ctx.attributes(), "out_dtype", x.type());
  if (type == x.type())
    return pass(ctx);
  ctx.output_variable("Out").set(cast(x, type, ctx.on().memory()));
}

namespace {

// The inputs of a sum: tensors of one shape, or rows of tensors of that shape.
struct sum_terms {
  std::vector<tensor> tensors;
  std::vector<selected_rows> rows;
};

sum_terms terms_of(const kernel_context& ctx) {
  sum_terms terms;
  for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i) {
    const variable& x = ctx.input_variable("X", i);
    if (x.is_rows())
      terms.rows.push_back(x.as_rows());
    else
      terms.tensors.push_back(ctx.input("X", i));
  }
  if (terms.tensors.empty() && terms.rows.empty())
    throw error(errc::invalid_argument, "sum has no inputs X");
  return terms;
}

// The terms' common shape. If scalars are mixed with tensors of one element, it
// is that of the latter.
shape common_shape(const std::vector<tensor>& tensors) {
  shape dims = tensors[0].dims();
  for (const tensor& x : tensors) {
    require_type("X", x.type(), tensors[0].type());
    const bool single = x.numel() == 1 && dims.numel() == 1;
    if (!(x.dims() == dims) && !single)
      throw_shapes("X", dims, "X", x.dims(),
                   "the terms of sum differ in shape");
    if (x.dims().rank() > dims.rank())
      dims = x.dims();
  }
  return dims;
}

struct add_loop {
  template <class T>
  TROUPE_INLINE static void run(T* out, const T* x, const T* y,
                                std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = elementwise::add::apply(x[i], y[i]);
  }
};

// Adds block by block in a buffer, so that Out may be any of the terms.
template <class T>
void add_tensors(T* out, const std::vector<tensor>& terms, std::int64_t n) {
  if (terms.size() == 2)
    return run_simd<add_loop>(out, terms[0].data<T>(), terms[1].data<T>(), n);
  constexpr std::int64_t block = 2048;
  T total[block];
  for (std::int64_t at = 0; at < n; at += block) {
    const std::int64_t count = std::min(block, n - at);
    std::copy_n(terms[0].data<T>() + at, count, total);
    for (std::size_t i = 1; i < terms.size(); ++i)
      run_simd<add_loop>(total, static_cast<const T*>(total),
                         terms[i].data<T>() + at, count);
    std::copy_n(total, count, out + at);
  }
}

void add_rows(float* out, const shape& dims, const selected_rows& rows) {
  const std::int64_t width = dims.rank() == 0 ? 1 : dims.numel(1, dims.rank());
  const auto count = static_cast<std::int64_t>(rows.rows.size());
  if (dims.rank() == 0 || rows.height != dims[0]
      || rows.values.numel() != count * width)
    throw_shapes("X", dims, "X", rows.values.dims(),
                 "the rows are not rows of the tensor");
  require_float(rows.values);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = rows.rows[static_cast<std::size_t>(i)];
    if (row < 0 || row >= rows.height)
      throw error(errc::out_of_range, "sum of a row " + std::to_string(row)
                                        + " outside of the tensor");
    accumulate(out + row * width, rows.values.data<float>() + i * width, 1.0f,
               width);
  }
}

// The sum of two images in the same blocks. It has the layout of the first.
bool sum_blocked_pair(kernel_context& ctx) {
  if (ctx.num_inputs("X") != 2 || !ctx.input_variable("X", 0).is_tensor()
      || !ctx.input_variable("X", 1).is_tensor())
    return false;
  const tensor a = held_input(ctx, "X", 0);
  const tensor b = held_input(ctx, "X", 1);
  if (block_of(a) == 0 || block_of(a) != block_of(b) || a.dims() != b.dims())
    return false;
  tensor out = output_like(ctx, "Out", a);
  in_ranges(ctx, a.numel(), [&](std::int64_t first, std::int64_t n) {
    apply_stored<elementwise::add>(
      results_of(out) + first, values_of(a) + first, values_of(b) + first, n);
  });
  return true;
}

void sum_dense(kernel_context& ctx, const sum_terms& terms) {
  const shape dims = common_shape(terms.tensors);
  const dtype type = terms.tensors[0].type();
  if (!terms.rows.empty())
    require_float(terms.tensors[0]);
  for_number_type("X", type, [&]<class T>(T) {
    tensor out = ctx.output("Out", dims, type);
    add_tensors(out.data<T>(), terms.tensors, out.numel());
    if constexpr (std::is_same_v<T, float>)
      for (const selected_rows& rows : terms.rows)
        add_rows(out.data<float>(), dims, rows);
  });
}

// The rows of all terms, each once: equal rows are added up.
void join_rows(kernel_context& ctx, const std::vector<selected_rows>& terms) {
  selected_rows out{{}, terms[0].height, {}};
  shape dims = terms[0].values.dims();
  dims[0] = 0;
  for (const selected_rows& rows : terms) {
    shape expected = rows.values.dims();
    expected[0] = 0;
    if (rows.height != out.height)
      throw_shapes("X", terms[0].values.dims(), "X", rows.values.dims(),
                   "rows of tensors of different height");
    require_shape("X", expected, dims);
    require_float(rows.values);
    if (rows.values.dims()[0] != static_cast<std::int64_t>(rows.rows.size()))
      throw_shape("X", rows.values.dims(),
                  "expected one for each of " + std::to_string(rows.rows.size())
                    + " rows");
    out.rows.insert(out.rows.end(), rows.rows.begin(), rows.rows.end());
  }
  dims[0] = static_cast<std::int64_t>(out.rows.size());
  out.values = tensor::make(ctx.on().memory(), dims, dtype::float32);
  float* to = out.values.data<float>();
  for (const selected_rows& rows : terms) {
    copy(to, rows.values.data<float>(), rows.values.numel());
    to += rows.values.numel();
  }
  ctx.output_variable("Out").set(merge_rows("X", out, ctx.on().memory()));
}

} // namespace

void run_sum(kernel_context& ctx) {
  if (ctx.has_input("X") && ctx.input_variable("X").is_array())
    return sum_arrays(ctx);
  if (sum_blocked_pair(ctx))
    return;
  const sum_terms terms = terms_of(ctx);
  if (terms.tensors.empty())
    join_rows(ctx, terms.rows);
  else
    sum_dense(ctx, terms);
}

} // namespace troupe::cpu
