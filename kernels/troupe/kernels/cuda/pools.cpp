// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/plans/pool_plan.hpp>

#include <limits>
#include <string>

namespace troupe::cuda {

namespace {

pooling pooling_of(const pool_options& options, const pool_plan& p) {
  const auto axis = [&](std::size_t at, const window_axis& a) {
    return pooled_axis{p.in[at], p.out[at], a.extent,
                       a.stride, a.before,  p.irregular};
  };
  return {axis(2, p.rows), axis(3, p.cols), options.max, options.exclusive};
}

// Images [N, C, H, W].
class pool_base : public kernel {
public:
  pool_base(const attribute_map& attributes, const char* op_type)
    : options_(attributes) {
    if (has_channels_last(attributes, "data_format"))
      throw error(errc::unsupported_op,
                  std::string(op_type)
                    + " with data_format NHWC has no kernel for CUDA devices",
                  {.op_type = op_type});
  }

protected:
  pool_plan plan(const shape& x) const {
    auto made = make_pool_plan(options_, x);
    if (x.numel(2, 4) > std::numeric_limits<std::int32_t>::max())
      throw_shape("X", x, "has planes of more than 2^31 pixels");
    return made;
  }
  pooling windows(const pool_plan& p) const { return pooling_of(options_, p); }
  bool takes_max() const noexcept { return options_.max; }

private:
  pool_options options_;
};

class pool_kernel final : public pool_base {
public:
  explicit pool_kernel(const attribute_map& attributes)
    : pool_base(attributes, "pool2d") {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X");
    const auto p = plan(x.dims());
    auto out = float_output(ctx, "Out", p.out);
    stream_of(ctx.queue())
      .run_for_each<pool>(out.numel(), {x.data<float>(), out.data<float>(),
                                        nullptr, out.numel(), windows(p)});
  }
};

class pool_grad_kernel final : public pool_base {
public:
  explicit pool_grad_kernel(const attribute_map& attributes)
    : pool_base(attributes, "pool2d_grad") {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X");
    const auto dout = float_input(ctx, "Out@GRAD");
    const auto p = plan(x.dims());
    require_shape("Out@GRAD", dout.dims(), p.out);
    auto& queue = stream_of(ctx.queue());
    tensor best;
    if (takes_max()) {
      best = tensor::make(ctx.on().memory(), p.out, dtype::int32);
      queue.run_for_each<pool>(dout.numel(), {x.data<float>(), nullptr,
                                              best.data<std::int32_t>(),
                                              dout.numel(), windows(p)});
    }
    auto dx = float_output(ctx, "X@GRAD", x.dims());
    queue.run_for_each<pool_gradient>(
      dx.numel(),
      {dout.data<float>(), takes_max() ? best.data<std::int32_t>() : nullptr,
       dx.data<float>(), dx.numel(), windows(p)});
  }
};

} // namespace

std::unique_ptr<kernel> make_pool2d(const attribute_map& attributes) {
  return std::make_unique<pool_kernel>(attributes);
}

std::unique_ptr<kernel> make_pool2d_grad(const attribute_map& attributes) {
  return std::make_unique<pool_grad_kernel>(attributes);
}

} // namespace troupe::cuda
