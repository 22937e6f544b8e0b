// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <cmath>

namespace troupe::cpu {

// Source: Huber, "Robust estimation of a location parameter", 1964. The loss of
// Residual = Y - X is quadratic up to delta and linear beyond.
void run_huber_loss(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const tensor y = ctx.input("Y");
  require_type("Y", y.type(), x.type());
  if (y.numel() != x.numel())
    throw_shapes("X", x.dims(), "Y", y.dims(), "expected equal shapes");
  const float delta = ctx.attributes().get_float("delta", 1.0f);
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    tensor residual = ctx.output("Residual", x.dims(), x.type());
    tensor out = ctx.output("Out", x.dims(), x.type());
    const auto d = static_cast<T>(delta);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const T r = y.data<T>()[i] - x.data<T>()[i];
      residual.data<T>()[i] = r;
      const T size = std::abs(r);
      out.data<T>()[i] = size <= d ? T(0.5) * r * r : d * (size - T(0.5) * d);
    }
  });
}

void run_huber_loss_grad(kernel_context& ctx) {
  const tensor residual = ctx.input("Residual");
  const tensor dout = ctx.input("Out@GRAD");
  require_type("Out@GRAD", dout.type(), residual.type());
  require_shape("Out@GRAD", dout.dims(), residual.dims());
  const float delta = ctx.attributes().get_float("delta", 1.0f);
  const auto write = [&](std::string_view slot, int sign) {
    if (!ctx.has_output(slot))
      return;
    for_number_type<false>("Residual", residual.type(), [&]<class T>(T) {
      tensor dx = ctx.output(slot, residual.dims(), residual.type());
      const auto d = static_cast<T>(delta);
      for (std::int64_t i = 0; i < residual.numel(); ++i) {
        const T r = residual.data<T>()[i];
        const T slope = std::abs(r) <= d ? r : std::copysign(d, r);
        dx.data<T>()[i] = T(sign) * slope * values_in<T>(dout)[i];
      }
    });
  };
  write("X@GRAD", -1);
  write("Y@GRAD", 1);
}

} // namespace troupe::cpu
