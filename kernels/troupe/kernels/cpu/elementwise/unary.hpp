// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace troupe::cpu {

/// What the gradient of a unary op reads besides dOut: X, Out, or nothing.
enum class saved_value : std::uint8_t { x, out, none };

/// A numeric attribute of an op, with Paddle's default.
struct unary_parameter {
  std::string_view name;
  float otherwise = 0.0f;
};

/// The base of unary ops, which are stateless types:
///
///     struct elu : unary_op<saved_value::x> {
///       static constexpr unary_parameter parameters[] = {{"alpha", 1.0f}};
///       template <class T>
///       static T forward(T x, const T* p);
///       template <class T>
///       static T gradient(T saved, T dout, const T* p);
///     };
///
/// where p points to the values of the parameters. Comparisons must be written
/// so that NaN stays NaN.
template <saved_value Saved, bool Integers = false>
struct unary_op {
  static constexpr saved_value saved = Saved;
  static constexpr bool integers = Integers; ///< also for int32 and int64
  static constexpr unary_parameter parameters[] = {{"", 0.0f}};
};

template <class Op>
using unary_values = std::array<float, std::size(Op::parameters)>;

template <class Op>
unary_values<Op> unary_values_of(const attribute_map& attributes) {
  unary_values<Op> values{};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
      attributes.get_float(Op::parameters[i].name, Op::parameters[i].otherwise);
  return values;
}

template <class Op>
struct unary_loop {
  template <class T>
  TROUPE_INLINE static void run(T* out, const T* x, std::int64_t n,
                                unary_values<Op> values) {
    T p[std::size(Op::parameters)];
    for (std::size_t i = 0; i < values.size(); ++i)
      p[i] = static_cast<T>(values[i]);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = Op::forward(x[i], p);
  }
};

template <class Op>
struct unary_gradient_loop {
  template <class T>
  TROUPE_INLINE static void run(T* dx, const T* saved, const T* dout,
                                std::int64_t n, unary_values<Op> values) {
    T p[std::size(Op::parameters)];
    for (std::size_t i = 0; i < values.size(); ++i)
      p[i] = static_cast<T>(values[i]);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i)
      dx[i] = Op::gradient(saved[i], dout[i], p);
  }
};

/// Out = Op(X).
template <class Op>
void run_unary_with(kernel_context& ctx, const unary_values<Op>& values) {
  const tensor x = stored_input(ctx, "X");
  tensor out = output_like(ctx, "Out", x);
  for_number_type<Op::integers>("X", x.type(), [&]<class T>(T) {
    T* to = out.data<T>();
    const T* from = values_in<T>(x);
    in_ranges(ctx, x.numel(), [&](std::int64_t first, std::int64_t n) {
      run_simd<unary_loop<Op>>(to + first, from + first, n, values);
    });
  });
}

template <class Op>
void run_unary(kernel_context& ctx) {
  run_unary_with<Op>(ctx, unary_values_of<Op>(ctx.attributes()));
}

/// dX = gradient of Op at the saved value, times dOut.
template <class Op>
void run_unary_gradient_with(kernel_context& ctx,
                             const unary_values<Op>& values) {
  constexpr auto saved_slot = Op::saved == saved_value::x     ? "X"
                              : Op::saved == saved_value::out ? "Out"
                                                              : "Out@GRAD";
  // No structured binding: clang's OpenMP cannot capture one.
  const auto inputs = alike_inputs(ctx, saved_slot, "Out@GRAD");
  const tensor& saved = inputs.first;
  const tensor& dout = inputs.second;
  require_shape("Out@GRAD", dout.dims(), saved.dims());
  require_type("Out@GRAD", dout.type(), saved.type());
  tensor dx = output_like(ctx, "X@GRAD", saved);
  for_number_type<Op::integers>("Out@GRAD", dout.type(), [&]<class T>(T) {
    T* to = dx.data<T>();
    const T* at = values_in<T>(saved);
    const T* d = values_in<T>(dout);
    in_ranges(ctx, dout.numel(), [&](std::int64_t first, std::int64_t n) {
      run_simd<unary_gradient_loop<Op>>(to + first, at + first, d + first, n,
                                        values);
    });
  });
}

template <class Op>
void run_unary_gradient(kernel_context& ctx) {
  run_unary_gradient_with<Op>(ctx, unary_values_of<Op>(ctx.attributes()));
}

/// A row of a family's table.
struct unary_entry {
  const char* op_type;
  const char* gradient_type; ///< null if there is no gradient op
  kernel_function forward;
  kernel_function gradient;
};

template <class Op>
constexpr unary_entry unary(const char* type, const char* gradient) {
  return {type, gradient, run_unary<Op>, run_unary_gradient<Op>};
}

inline void add_unary(kernel_table& table,
                      std::span<const unary_entry> entries) {
  for (const auto& entry : entries) {
    table.add(entry.op_type, device_kind::cpu, entry.forward);
    if (entry.gradient_type)
      table.add(entry.gradient_type, device_kind::cpu, entry.gradient);
  }
}

} // namespace troupe::cpu
