// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/plans/dropout_options.hpp>
#include <troupe/kernels/random.hpp>

#include <string>

namespace troupe::cuda {

namespace {

/// out = factor * x
void run_factor(kernel_context& ctx, const tensor& x, tensor& out,
                float factor) {
  stream_of(ctx.queue())
    .run_for_each<scale>(
      x.numel(), {x.data<float>(), out.data<float>(), x.numel(), factor, 0});
}

class dropout_kernel final : public kernel {
public:
  explicit dropout_kernel(const attribute_map& attributes)
    : options_(attributes) {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X");
    auto out = float_output(ctx, "Out", x.dims());
    if (options_.is_test)
      return run_test(ctx, x, out);
    auto mask = ctx.has_output("Mask")
                  ? ctx.output("Mask", x.dims(), dtype::uint8)
                  : tensor::make(ctx.on().memory(), x.dims(), dtype::uint8);
    auto& queue = stream_of(ctx.queue());
    queue.run_for_each<drop_out>(
      x.numel(), {x.data<float>(),
                  out.data<float>(),
                  mask.data<std::uint8_t>(),
                  x.numel(),
                  dropout_options::first_number(ctx, x.dims()),
                  {ctx.step().seed, dropout_options::sequence(ctx),
                   static_cast<std::uint32_t>(ctx.step().step)},
                  queue.step_number(),
                  options_.probability,
                  options_.factor()});
  }

private:
  void run_test(kernel_context& ctx, const tensor& x, tensor& out) const {
    run_factor(ctx, x, out, options_.factor());
    if (!ctx.has_output("Mask"))
      return;
    auto mask = ctx.output("Mask", x.dims(), dtype::uint8);
    stream_of(ctx.queue())
      .run_for_each<fill<std::uint8_t>>(
        mask.numel(), {mask.data<std::uint8_t>(), mask.numel(), 1});
  }

  dropout_options options_;
};

class dropout_grad_kernel final : public kernel {
public:
  explicit dropout_grad_kernel(const attribute_map& attributes)
    : options_(attributes) {}

  void run(kernel_context& ctx) override {
    const auto dout = float_input(ctx, "Out@GRAD");
    auto dx = float_output(ctx, "X@GRAD", dout.dims());
    if (options_.is_test)
      return run_factor(ctx, dout, dx, options_.factor());
    const auto mask = ctx.input("Mask");
    require_shape("Mask", mask.dims(), dout.dims());
    require_type("Mask", mask.type(), dtype::uint8);
    stream_of(ctx.queue())
      .run_for_each<apply_mask>(
        dout.numel(), {dout.data<float>(), mask.data<std::uint8_t>(),
                       dx.data<float>(), dout.numel(), options_.factor()});
  }

private:
  dropout_options options_;
};

} // namespace

std::unique_ptr<kernel> make_dropout(const attribute_map& attributes) {
  return std::make_unique<dropout_kernel>(attributes);
}

std::unique_ptr<kernel> make_dropout_grad(const attribute_map& attributes) {
  return std::make_unique<dropout_grad_kernel>(attributes);
}

} // namespace troupe::cuda
