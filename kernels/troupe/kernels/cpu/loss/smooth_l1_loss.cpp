// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>

#include <cmath>

namespace troupe::cpu {

namespace {

// The weights of elements; all are 1 if the op lacks the input.
class element_weights {
public:
  element_weights(const kernel_context& ctx, std::string_view slot,
                  const tensor& like) {
    if (!ctx.has_input(slot))
      return;
    weights_ = ctx.input(slot);
    require_type(slot, weights_.type(), like.type());
    require_shape(slot, weights_.dims(), like.dims());
  }

  template <class T>
  T at(std::int64_t i) const {
    return weights_ ? values_in<T>(weights_)[i] : T(1);
  }

private:
  tensor weights_;
};

template <class T>
T square_of_sigma(const kernel_context& ctx) {
  const auto sigma = static_cast<T>(ctx.attributes().get_float("sigma", 1.0f));
  return sigma * sigma;
}

// Quadratic up to 1 / sigma^2, linear beyond.
template <class T>
T loss_of(T difference, T sigma2) {
  const T size = std::abs(difference);
  return size < 1 / sigma2 ? T(0.5) * sigma2 * difference * difference
                           : size - T(0.5) / sigma2;
}

template <class T>
T slope_of(T difference, T sigma2) {
  return std::abs(difference) < 1 / sigma2 ? sigma2 * difference
                                           : std::copysign(T(1), difference);
}

std::int64_t width_of(const tensor& x) {
  return x.dims().numel(1, x.dims().rank());
}

void require_loss_operands(const tensor& x, const tensor& y) {
  require_type("Y", y.type(), x.type());
  require_shape("Y", y.dims(), x.dims());
  if (x.dims().rank() < 2)
    throw_shape("X", x.dims(), "expected rank 2 at least");
}

} // namespace

// Source: Girshick, "Fast R-CNN", 2015. Diff = inside (X - Y). Out is the sum
// of outside loss(Diff) over each sample.
void run_smooth_l1_loss(kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const tensor y = ctx.input("Y");
  require_loss_operands(x, y);
  const element_weights inside(ctx, "InsideWeight", x);
  const element_weights outside(ctx, "OutsideWeight", x);
  const std::int64_t width = width_of(x);
  for_number_type<false>("X", x.type(), [&]<class T>(T) {
    const T sigma2 = square_of_sigma<T>(ctx);
    tensor difference = ctx.output("Diff", x.dims(), x.type());
    tensor out = ctx.output("Out", {x.dims()[0], 1}, x.type());
    for (std::int64_t row = 0; row < out.numel(); ++row) {
      T total{};
      for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
        const T d = inside.at<T>(i) * (values_in<T>(x)[i] - values_in<T>(y)[i]);
        difference.data<T>()[i] = d;
        total += outside.at<T>(i) * loss_of(d, sigma2);
      }
      out.data<T>()[row] = total;
    }
  });
}

void run_smooth_l1_loss_grad(kernel_context& ctx) {
  const tensor difference = ctx.input("Diff");
  const tensor dout = ctx.input("Out@GRAD");
  const shape& dims = difference.dims();
  require_type("Out@GRAD", dout.type(), difference.type());
  if (dims.rank() < 2)
    throw_shape("Diff", dims, "expected rank 2 at least");
  if (dout.numel() != dims[0])
    require_shape("Out@GRAD", dout.dims(), {dims[0], 1});
  const element_weights inside(ctx, "InsideWeight", difference);
  const element_weights outside(ctx, "OutsideWeight", difference);
  const std::int64_t width = width_of(difference);
  const auto write = [&](std::string_view slot, int sign) {
    if (!ctx.has_output(slot))
      return;
    for_number_type<false>("Diff", difference.type(), [&]<class T>(T) {
      const T sigma2 = square_of_sigma<T>(ctx);
      tensor dx = ctx.output(slot, dims, difference.type());
      for (std::int64_t i = 0; i < dx.numel(); ++i)
        dx.data<T>()[i] = T(sign) * values_in<T>(dout)[i / width]
                          * inside.at<T>(i) * outside.at<T>(i)
                          * slope_of(values_in<T>(difference)[i], sigma2);
    });
  };
  write("X@GRAD", 1);
  write("Y@GRAD", -1);
}

} // namespace troupe::cpu
