// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/element_types.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

template <class T>
struct ranked {
  T value{};
  std::int64_t index = 0;
};

// Best first. NaN counts as the largest; equal elements keep their order.
template <class T, bool Largest>
bool ahead(const ranked<T>& a, const ranked<T>& b) {
  const bool a_nan = a.value != a.value;
  const bool b_nan = b.value != b.value;
  if (a_nan != b_nan)
    return a_nan == Largest;
  if (a.value != b.value && !a_nan)
    return Largest ? a.value > b.value : a.value < b.value;
  return a.index < b.index;
}

// The best `count` elements of each line along the axis, best first.
struct ranking {
  axis_view view;
  std::int64_t count = 0;
  bool largest = true;
};

template <class T>
void rank_line(std::vector<ranked<T>>& line, const ranking& r) {
  const auto last = line.begin() + r.count;
  if (r.largest)
    std::partial_sort(line.begin(), last, line.end(), ahead<T, true>);
  else
    std::partial_sort(line.begin(), last, line.end(), ahead<T, false>);
}

template <class T>
void rank_lines(const ranking& r, const tensor& x, tensor& out,
                tensor& indices) {
  const axis_view& v = r.view;
  std::vector<ranked<T>> line(static_cast<std::size_t>(v.extent));
  for (std::int64_t n = 0; n < v.outer * v.inner; ++n) {
    const std::int64_t o = n / v.inner;
    const std::int64_t i = n % v.inner;
    for (std::int64_t e = 0; e < v.extent; ++e)
      line[static_cast<std::size_t>(e)] = {
        x.data<T>()[(o * v.extent + e) * v.inner + i], e};
    rank_line(line, r);
    for (std::int64_t e = 0; e < r.count; ++e) {
      const std::int64_t at = (o * r.count + e) * v.inner + i;
      out.data<T>()[at] = line[static_cast<std::size_t>(e)].value;
      indices.data<std::int64_t>()[at] =
        line[static_cast<std::size_t>(e)].index;
    }
  }
}

// X as lines along `axis`. A scalar is a line of one element.
struct lines {
  shape dims;
  std::size_t axis = 0;
};

lines lines_of(const shape& x, std::int64_t axis) {
  const shape dims = x.rank() == 0 ? shape{1} : x;
  return {dims, normal_axis(axis, dims.rank(), "X")};
}

void write_ranking(kernel_context& ctx, const tensor& x, const lines& l,
                   std::int64_t count, bool largest) {
  shape dims = l.dims;
  dims[l.axis] = count;
  if (x.dims().rank() == 0)
    dims = shape{};
  tensor out = ctx.output("Out", dims, x.type());
  tensor indices = ctx.output("Indices", dims, dtype::int64);
  const ranking r{{l.dims, l.axis}, count, largest};
  with_number(x.type(), "X", [&](auto zero) {
    rank_lines<decltype(zero)>(r, x, out, indices);
  });
}

void top(kernel_context& ctx, std::int64_t axis) {
  const tensor x = ctx.input("X");
  const lines l = lines_of(x.dims(), axis);
  const std::int64_t k = integer_of(ctx, "K", "k", 1);
  if (k < 1 || k > l.dims[l.axis])
    throw error(errc::out_of_range, "top " + std::to_string(k) + " of "
                                      + std::to_string(l.dims[l.axis])
                                      + " elements");
  write_ranking(ctx, x, l, k, ctx.attributes().get_bool("largest", true));
}

// Gradients go back to the positions of their elements.
void spread(kernel_context& ctx, std::int64_t axis) {
  const shape x = ctx.input("X").dims();
  const tensor dout = ctx.input("Out@GRAD");
  const tensor chosen = ctx.input("Indices");
  require_shape("Indices", chosen.dims(), dout.dims());
  const lines l = lines_of(x, axis);
  const axis_view v(l.dims, l.axis);
  const std::int64_t count =
    v.outer * v.inner == 0 ? 0 : dout.numel() / (v.outer * v.inner);
  if (dout.numel() != v.outer * count * v.inner)
    throw_shapes("Out@GRAD", dout.dims(), "X", x, "do not go together");
  const index_values index(chosen, "Indices");
  tensor dx = ctx.output("X@GRAD", x, dout.type());
  std::memset(dx.raw(), 0, dx.bytes());
  with_floating(dout.type(), "Out@GRAD", [&](auto zero) {
    using element = decltype(zero);
    for (std::int64_t at = 0; at < dout.numel(); ++at) {
      const std::int64_t o = at / (count * v.inner);
      if (index[at] < 0 || index[at] >= v.extent)
        throw_index(ctx, "Indices", index[at], v.extent);
      dx.data<element>()[(o * v.extent + index[at]) * v.inner + at % v.inner] +=
        dout.data<element>()[at];
    }
  });
}

std::int64_t axis_attribute(const kernel_context& ctx) {
  return ctx.attributes().get_int("axis", -1);
}

// The position of the largest or smallest element of each line; of equal ones
// the first. Row by row, so that memory is read in order.
template <class T, class Better>
void find_best(const axis_view& v, const T* x, std::int64_t* best,
               Better better) {
  std::fill_n(best, v.outer * v.inner, std::int64_t{0});
  for (std::int64_t o = 0; o < v.outer; ++o, best += v.inner)
    for (std::int64_t e = 0; e < v.extent; ++e) {
      const T* row = x + (o * v.extent + e) * v.inner;
      for (std::int64_t i = 0; i < v.inner; ++i)
        if (better(row[i], x[(o * v.extent + best[i]) * v.inner + i]))
          best[i] = e;
    }
}

// X's shape without the axis or, with keepdims, with extent 1 there.
shape extremum_shape(const kernel_context& ctx, const shape& x,
                     std::size_t axis) {
  const bool keep = ctx.attributes().get_bool("keepdims", false);
  if (ctx.attributes().get_bool("flatten", false))
    return keep ? shape(std::vector<std::int64_t>(x.rank(), 1)) : shape{};
  std::vector<std::int64_t> dims(x.begin(), x.end());
  if (x.rank() == 0)
    return shape{};
  if (keep)
    dims[axis] = 1;
  else
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return shape(dims);
}

template <bool Largest>
void extremum(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const bool flatten = ctx.attributes().get_bool("flatten", false);
  const lines l = flatten
                    ? lines{{x.numel()}, 0}
                    : lines_of(x.dims(), integer_of(ctx, "Axis", "axis", -1));
  const axis_view v(l.dims, l.axis);
  if (v.extent == 0)
    throw_shape("X", x.dims(), "has no elements to choose from");
  const dtype type = dtype_attribute(ctx.attributes(), "dtype", dtype::int64);
  const shape dims = extremum_shape(ctx, x.dims(), l.axis);
  tensor best = tensor::make(ctx.on().memory(), dims, dtype::int64);
  with_number(x.type(), "X", [&](auto zero) {
    using element = decltype(zero);
    find_best(v, x.data<element>(), best.data<std::int64_t>(),
              [](element a, element b) { return Largest ? a > b : a < b; });
  });
  ctx.output_variable("Out").set(
    type == dtype::int64 ? best : cast(best, type, ctx.on().memory()));
}

} // namespace

void run_top_k(kernel_context& ctx) {
  top(ctx, axis_attribute(ctx));
}

void run_top_k_grad(kernel_context& ctx) {
  spread(ctx, axis_attribute(ctx));
}

void run_argsort(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const lines l = lines_of(x.dims(), axis_attribute(ctx));
  write_ranking(ctx, x, l, l.dims[l.axis],
                ctx.attributes().get_bool("descending", false));
}

void run_arg_max(kernel_context& ctx) {
  extremum<true>(ctx);
}

void run_arg_min(kernel_context& ctx) {
  extremum<false>(ctx);
}

} // namespace troupe::cpu
