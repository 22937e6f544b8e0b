// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/broadcast.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/vector_ops.hpp>

#include <array>

namespace troupe::cpu {

namespace {

float inverse(std::int64_t count) {
  return count == 0 ? 0.0f : 1.0f / static_cast<float>(count);
}

struct reduction {
  shape kept;             // X's extents, 1 where reduced
  shape out;              // the result's shape
  std::int64_t count = 1; // elements behind one result
};

class reduce_base : public kernel {
public:
  reduce_base(bool average, const attribute_map& attributes)
    : average_(average), dims_(attributes.get_ints("dim", {0})),
      keep_(attributes.get_bool("keep_dim", false)),
      all_(attributes.get_bool("reduce_all", false) || dims_.empty()) {}

protected:
  reduction reduction_of(const shape& x) const {
    const auto reduced = reduced_axes(x);
    reduction r{x, {}, 1};
    std::vector<std::int64_t> extents;
    for (std::size_t i = 0; i < x.rank(); ++i) {
      if (reduced[i]) {
        r.count *= x[i];
        r.kept[i] = 1;
      }
      if (!reduced[i] || keep_)
        extents.push_back(r.kept[i]);
    }
    r.out = shape(extents);
    return r;
  }

  float factor(const reduction& r) const {
    return average_ ? inverse(r.count) : 1.0f;
  }

private:
  std::array<bool, shape::max_rank> reduced_axes(const shape& x) const {
    std::array<bool, shape::max_rank> reduced{};
    if (all_)
      reduced.fill(true);
    else
      for (const std::int64_t axis : dims_)
        reduced[normal_axis(axis, x.rank(), "X")] = true;
    return reduced;
  }

  bool average_;
  std::vector<std::int64_t> dims_;
  bool keep_;
  bool all_;
};

class reduce_kernel final : public reduce_base {
public:
  using reduce_base::reduce_base;
  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "X");
    const reduction r = reduction_of(x.dims());
    tensor out = float_output(ctx, "Out", r.out);
    if (r.count == 0)
      return fill(out.data<float>(), out.numel(), 0.0f);
    reduce_to_x(plan_broadcast(r.kept, x.dims(), -1), x.data<float>(),
                factor(r), out.data<float>(), out.numel());
  }
};

class reduce_grad_kernel final : public reduce_base {
public:
  using reduce_base::reduce_base;
  void run(kernel_context& ctx) override {
    const shape dims = ctx.input("X").dims();
    const tensor dout = float_input(ctx, "Out@GRAD");
    const reduction r = reduction_of(dims);
    if (dout.numel() != r.out.numel())
      require_shape("Out@GRAD", dout.dims(), r.out);
    tensor dx = float_output(ctx, "X@GRAD", dims);
    spread(r, dims, dout.data<float>(), dx.data<float>());
  }

private:
  void spread(const reduction& r, const shape& dims, const float* dout,
              float* dx) const {
    if (r.count == 0)
      return;
    const broadcast_plan plan = plan_broadcast(r.kept, dims, -1);
    const auto& last = plan.axes.back();
    const float scale = factor(r);
    for_each_row(plan, [&](std::int64_t o, std::int64_t i, std::int64_t) {
      if (last.x_step == 0)
        fill(dx + o, last.extent, dout[i] * scale);
      else
        scale_add(dx + o, dout + i, scale, 0.0f, last.extent);
    });
  }
};

} // namespace

void run_mean(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  tensor out = float_output(ctx, "Out", {});
  const auto n = x.numel();
  const double total = sum(x.data<float>(), n);
  out.data<float>()[0] =
    n == 0 ? 0.0f : static_cast<float>(total / static_cast<double>(n));
}

void run_mean_grad(kernel_context& ctx) {
  const shape dims = ctx.input("X").dims();
  const float dout = scalar_input(ctx, "Out@GRAD");
  tensor dx = float_output(ctx, "X@GRAD", dims);
  fill(dx.data<float>(), dx.numel(), dout * inverse(dx.numel()));
}

std::unique_ptr<kernel> make_reduce_sum(const attribute_map& attributes) {
  return std::make_unique<reduce_kernel>(false, attributes);
}
std::unique_ptr<kernel> make_reduce_mean(const attribute_map& attributes) {
  return std::make_unique<reduce_kernel>(true, attributes);
}
std::unique_ptr<kernel> make_reduce_sum_grad(const attribute_map& attributes) {
  return std::make_unique<reduce_grad_kernel>(false, attributes);
}
std::unique_ptr<kernel> make_reduce_mean_grad(const attribute_map& attributes) {
  return std::make_unique<reduce_grad_kernel>(true, attributes);
}

} // namespace troupe::cpu
