// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <troupe/base/error.hpp>

#include <string>

namespace troupe::cpu {

namespace {

struct clip_loop {
  template <class T>
  TROUPE_INLINE static void run(T* out, const T* x, T least, T most,
                                std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const T high = x[i] < least ? least : x[i];
      out[i] = high > most ? most : high;
    }
  }
};

struct clip_gradient_loop {
  template <class T>
  TROUPE_INLINE static void run(T* dx, const T* x, const T* dout, T least,
                                T most, std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      dx[i] = x[i] > least && x[i] < most ? dout[i] : T(0);
  }
};

struct bounds {
  double least;
  double most;
};

bounds bounds_of(const kernel_context& ctx) {
  const bounds b{number_input(ctx, "Min", "min", 0.0f),
                 number_input(ctx, "Max", "max", 0.0f)};
  if (!(b.least <= b.most))
    throw error(errc::invalid_argument,
                "clip has its least value " + std::to_string(b.least)
                  + " above its largest one " + std::to_string(b.most));
  return b;
}

} // namespace

void run_clip(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const bounds b = bounds_of(ctx);
  for_number_type("X", x.type(), [&]<class T>(T) {
    tensor out = ctx.output("Out", x.dims(), x.type());
    run_simd<clip_loop>(out.data<T>(), x.data<T>(), number_as<T>(b.least),
                        number_as<T>(b.most), x.numel());
  });
}

void run_clip_grad(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const tensor dout = ctx.input("Out@GRAD");
  require_shape("Out@GRAD", dout.dims(), x.dims());
  require_type("Out@GRAD", dout.type(), x.type());
  const bounds b = bounds_of(ctx);
  for_number_type("X", x.type(), [&]<class T>(T) {
    tensor dx = ctx.output("X@GRAD", x.dims(), x.type());
    run_simd<clip_gradient_loop>(dx.data<T>(), x.data<T>(), dout.data<T>(),
                                 number_as<T>(b.least), number_as<T>(b.most),
                                 x.numel());
  });
}

} // namespace troupe::cpu
