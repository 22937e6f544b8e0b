// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/loss/row_softmax.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/cpu/reduce/lines.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_math.hpp>

namespace troupe::cpu {

namespace {

// A scalar is a line of one element.
axis_view view_of(const kernel_context& ctx, const shape& dims,
                  std::string_view slot) {
  if (dims.rank() == 0)
    return {shape{1}, 0};
  const auto axis = ctx.attributes().get_int("axis", -1);
  return {dims, normal_axis(axis, dims.rank(), slot)};
}

struct softmax_line {
  template <class T>
  static void forward(T* out, const T* x, T*, std::int64_t n) {
    row_softmax(out, x, n);
  }

  template <class T>
  static void gradient(T* dx, const T* out, const T* dout, std::int64_t n) {
    run_simd<loop>(dx, out, dout, row_dot(out, dout, n), n);
  }

private:
  struct loop {
    template <class T>
    TROUPE_INLINE static void run(T* dx, const T* out, const T* dout, T dot,
                                  std::int64_t n) {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i)
        dx[i] = out[i] * (dout[i] - dot);
    }
  };
};

struct log_softmax_line {
  template <class T>
  static void forward(T* out, const T* x, T* scratch, std::int64_t n) {
    const auto total = row_softmax(scratch, x, n);
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = clip_logit(x[i] - total.largest) - total.log_total;
  }

  template <class T>
  static void gradient(T* dx, const T* out, const T* dout, std::int64_t n) {
    T total = 0;
    for (std::int64_t i = 0; i < n; ++i)
      total += dout[i];
    run_simd<loop>(dx, out, dout, total, n);
  }

private:
  struct loop {
    template <class T>
    TROUPE_INLINE static void run(T* dx, const T* out, const T* dout, T total,
                                  std::int64_t n) {
#pragma omp simd
      for (std::int64_t i = 0; i < n; ++i)
        dx[i] = dout[i] - exp_of(out[i]) * total;
    }
  };
};

template <class Line, class T>
void forward_lines(kernel_context& ctx, const axis_view& v, T* out,
                   const T* x) {
  line_buffer<T> from(ctx, v), to(ctx, v);
  tensor scratch = tensor::make(ctx.on().memory(), {v.extent}, dtype_of<T>);
  for_each_line(v, [&](auto o, auto i, auto) {
    Line::forward(to.write(out, o, i), from.read(x, o, i), scratch.data<T>(),
                  v.extent);
    to.wrote(out, o, i);
  });
}

template <class Line, class T>
void gradient_lines(kernel_context& ctx, const axis_view& v, T* dx,
                    const T* out, const T* dout) {
  line_buffer<T> out_line(ctx, v), dout_line(ctx, v), dx_line(ctx, v);
  for_each_line(v, [&](auto o, auto i, auto) {
    Line::gradient(dx_line.write(dx, o, i), out_line.read(out, o, i),
                   dout_line.read(dout, o, i), v.extent);
    dx_line.wrote(dx, o, i);
  });
}

template <class Line>
void run_forward(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const axis_view v = view_of(ctx, x.dims(), "X");
  tensor out = ctx.output("Out", x.dims(), x.type());
  if (x.numel() == 0)
    return;
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    T* to = out.data<T>();
    const T* from = x.data<T>();
    in_line_parts(ctx, v, [&](const axis_view& part, std::int64_t at) {
      forward_lines<Line>(ctx, part, to + at, from + at);
    });
  });
}

template <class Line>
void run_gradient(kernel_context& ctx) {
  const tensor out = ctx.input("Out");
  const tensor dout = ctx.input("Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), out.dims());
  require_type("Out@GRAD", dout.type(), out.type());
  const axis_view v = view_of(ctx, out.dims(), "Out");
  tensor dx = ctx.output("X@GRAD", out.dims(), out.type());
  for_number_type<false>("Out", out.type(), [&]<class T>(T) {
    T* to = dx.data<T>();
    in_line_parts(ctx, v, [&](const axis_view& part, std::int64_t at) {
      gradient_lines<Line>(ctx, part, to + at, out.data<T>() + at,
                           dout.data<T>() + at);
    });
  });
}

} // namespace

void run_softmax(kernel_context& ctx) {
  run_forward<softmax_line>(ctx);
}

void run_softmax_grad(kernel_context& ctx) {
  run_gradient<softmax_line>(ctx);
}

void run_log_softmax(kernel_context& ctx) {
  run_forward<log_softmax_line>(ctx);
}

void run_log_softmax_grad(kernel_context& ctx) {
  run_gradient<log_softmax_line>(ctx);
}

} // namespace troupe::cpu
