// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

#include <algorithm>

namespace troupe::ref {

namespace {

/// Applies `f` to the elements of X, a tensor or selected rows.
template <class Function>
void map_elements(kernel_context& ctx, Function f) {
  const auto& x = ctx.input_variable("X");
  const bool is_rows = x.is_rows();
  const auto source = is_rows ? x.as_rows().values : ctx.input("X");
  auto values = read(source);
  for (double& v : values.values)
    v = f(v);
  if (is_rows)
    output_rows(ctx, "Out", x.as_rows().rows, x.as_rows().height, values,
                source.type());
  else
    output(ctx, "Out", values, source.type());
}

bool all_rows(const kernel_context& ctx) {
  for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i)
    if (!ctx.input_variable("X", i).is_rows())
      return false;
  return true;
}

/// Joins the rows of several inputs; duplicates stay.
void join_rows(kernel_context& ctx) {
  const auto& first = ctx.input_variable("X").as_rows();
  auto joined = first;
  auto values = read(first.values);
  for (std::size_t i = 1; i < ctx.num_inputs("X"); ++i) {
    const auto& next = ctx.input_variable("X", i).as_rows();
    require(next.height == joined.height, errc::shape_mismatch,
            "sum of rows of tensors of different height");
    joined.rows.insert(joined.rows.end(), next.rows.begin(), next.rows.end());
    const auto more = read(next.values);
    values.values.insert(values.values.end(), more.values.begin(),
                         more.values.end());
  }
  values.dims[0] = static_cast<std::int64_t>(joined.rows.size());
  output_rows(ctx, "Out", joined.rows, joined.height, values,
              first.values.type());
}

array dense(const kernel_context& ctx, std::size_t index) {
  const auto& x = ctx.input_variable("X", index);
  return x.is_rows() ? densify(x.as_rows()) : input(ctx, "X", index);
}

dtype type_of(const variable& x) {
  return x.is_rows() ? x.as_rows().values.type() : x.as_tensor().type();
}

} // namespace

void scale(kernel_context& ctx) {
  const auto& a = ctx.attributes();
  const double factor = a.get_float("scale", 1), bias = a.get_float("bias", 0);
  const bool after = a.get_bool("bias_after_scale", true);
  map_elements(ctx, [=](double x) {
    return after ? factor * x + bias : factor * (x + bias);
  });
}

void sum(kernel_context& ctx) {
  require(ctx.num_inputs("X") > 0, errc::invalid_argument, "sum of nothing");
  if (all_rows(ctx))
    return join_rows(ctx);
  auto total = dense(ctx, 0);
  for (std::size_t i = 1; i < ctx.num_inputs("X"); ++i) {
    const auto next = dense(ctx, i);
    require_same("term of sum", next.dims, total.dims);
    for (std::int64_t k = 0; k < total.size(); ++k)
      total[k] += next[k];
  }
  output(ctx, "Out", total, type_of(ctx.input_variable("X")));
}

void cast(kernel_context& ctx) {
  const auto type = from_paddle_type(ctx.attributes().get_int("out_dtype", 5));
  output(ctx, "Out", input(ctx, "X"), type);
}

void assign(kernel_context& ctx) {
  map_elements(ctx, [](double x) { return x; });
}

} // namespace troupe::ref
