// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/own_ops/own_op.hpp>

#include <cmath>
#include <cstddef>

namespace troupe::test {

/// exp(-x^2) of each element, in float32 and float64.
template <class T>
void gaussian_values(kernel_context& ctx) {
  const auto x = ctx.input("X");
  auto out = ctx.output("Out", x.dims(), x.type());
  for (std::size_t i = 0; i < x.values<T>().size(); ++i)
    out.values<T>()[i] = std::exp(-x.values<T>()[i] * x.values<T>()[i]);
}

/// Its gradient, if `Percent` is 100; otherwise a wrong one.
template <class T, int Percent>
void gaussian_gradients(kernel_context& ctx) {
  const auto x = ctx.input("X"), out = ctx.input("Out"),
             above = ctx.input("Out@GRAD");
  auto down = ctx.output("X@GRAD", x.dims(), x.type());
  for (std::size_t i = 0; i < x.values<T>().size(); ++i)
    down.values<T>()[i] = T(Percent) / 100 * -2 * x.values<T>()[i]
                          * out.values<T>()[i] * above.values<T>()[i];
}

inline void gaussian(kernel_context& ctx) {
  ctx.input("X").type() == dtype::float64 ? gaussian_values<double>(ctx)
                                          : gaussian_values<float>(ctx);
}

template <int Percent = 100>
void gaussian_grad(kernel_context& ctx) {
  ctx.input("X").type() == dtype::float64
    ? gaussian_gradients<double, Percent>(ctx)
    : gaussian_gradients<float, Percent>(ctx);
}

inline graph::own_op gaussian_op() {
  return {.schema = {.type = "gaussian",
                     .inputs = {{"X"}},
                     .outputs = {{"Out"}},
                     .infer =
                       [](graph::shape_inference& s) {
                         s.output("Out", s.dims("X"), s.type("X"));
                       },
                     .gradient = {.groups = {{"X"}},
                                  .reads = {"X", "Out"},
                                  .outputs = {"Out"}}},
          .run = gaussian,
          .gradient = gaussian_grad<>};
}

} // namespace troupe::test
