// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <vector>

namespace troupe::cpu {

namespace {

// The prior of each class: PriorDist, or 1 / classes.
template <class T>
std::vector<T> shares_of(const kernel_context& ctx, const tensor& x) {
  const std::int64_t classes = x.dims().dim(-1);
  const auto epsilon =
    static_cast<T>(ctx.attributes().get_float("epsilon", 0.0f));
  std::vector<T> shares(static_cast<std::size_t>(classes),
                        epsilon / static_cast<T>(classes));
  if (!ctx.has_input("PriorDist"))
    return shares;
  const tensor prior = ctx.input("PriorDist");
  require_type("PriorDist", prior.type(), x.type());
  if (prior.numel() != classes)
    require_shape("PriorDist", prior.dims(), {1, classes});
  for (std::size_t i = 0; i < shares.size(); ++i)
    shares[i] = epsilon * prior.data<T>()[i];
  return shares;
}

} // namespace

// Source: Szegedy et al., "Rethinking the Inception architecture", 2016,
// section 7. Out = (1 - epsilon) X + epsilon PriorDist.
void run_label_smooth(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  if (x.dims().rank() < 1)
    throw_shape("X", x.dims(), "expected rank 1 at least");
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    const auto shares = shares_of<T>(ctx, x);
    const auto kept =
      T(1) - static_cast<T>(ctx.attributes().get_float("epsilon", 0.0f));
    tensor out = ctx.output("Out", x.dims(), x.type());
    for (std::int64_t i = 0; i < x.numel(); ++i)
      out.data<T>()[i] = kept * values_in<T>(x)[i]
                         + shares[static_cast<std::size_t>(i) % shares.size()];
  });
}

void run_label_smooth_grad(kernel_context& ctx) {
  const tensor dout = ctx.input("Out@GRAD");
  for_number_type<false>("Out@GRAD", dout.type(), [&]<class T>(T) {
    const auto kept =
      T(1) - static_cast<T>(ctx.attributes().get_float("epsilon", 0.0f));
    tensor dx = ctx.output("X@GRAD", dout.dims(), dout.type());
    for (std::int64_t i = 0; i < dout.numel(); ++i)
      dx.data<T>()[i] = kept * values_in<T>(dout)[i];
  });
}

} // namespace troupe::cpu
