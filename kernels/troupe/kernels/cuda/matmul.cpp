// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/arguments.hpp>
#include <troupe/kernels/cuda/factories.hpp>
#include <troupe/kernels/cuda/queue_parts.hpp>
#include <troupe/kernels/plans/matmul_plan.hpp>

#include <optional>
#include <vector>

namespace troupe::cuda {

namespace {

/// Which matrix of a stack each product uses, in units of matrices.
struct stack {
  std::vector<std::int64_t> at;
  std::int64_t size; ///< elements of a matrix

  /// The elements between one product's matrix and the next one's, if these
  /// are always as many.
  std::optional<std::int64_t> step() const {
    const auto each = at.size() > 1 ? at[1] : 0;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (at[i] != static_cast<std::int64_t>(i) * each)
        return std::nullopt;
    return each * size;
  }
};

/// Queues a product for each element of the stacks: in one call if they lie
/// evenly. Products that share a result are added up, one after the other.
void queue_stack(cuda_stream& queue, matrix_product p, const stack& a,
                 const stack& b, const stack& c) {
  const auto a_step = a.step(), b_step = b.step(), c_step = c.step();
  if (!p.adds && a_step && b_step && c_step) {
    p.count = static_cast<std::int64_t>(a.at.size());
    p.a_step = *a_step;
    p.b_step = *b_step;
    p.c_step = *c_step;
    return queue_products(queue, p);
  }
  for (std::size_t i = 0; i < a.at.size(); ++i) {
    auto one = p;
    one.a += a.at[i] * a.size;
    one.b += b.at[i] * b.size;
    one.c += c.at[i] * c.size;
    queue_products(queue, one);
  }
}

/// A matmul, with its stacks of matrices.
struct stacked_product {
  matmul_options options;
  matmul_plan plan;
  stack x, y, out;

  stacked_product(const matmul_options& o, const shape& x_dims,
                  const shape& y_dims)
    : options(o), plan(make_matmul_plan(o, x_dims, y_dims)), x{plan.x_batch,
                                                               plan.m * plan.k},
      y{plan.y_batch, plan.k * plan.n}, out{{}, plan.m * plan.n} {
    for (std::size_t i = 0; i < x.at.size(); ++i)
      out.at.push_back(static_cast<std::int64_t>(i));
    if (plan.folds_into_rows(o))
      fold_into_rows();
  }

private:
  void fold_into_rows() {
    plan.m *= static_cast<std::int64_t>(out.at.size());
    x = {{0}, plan.m * plan.k};
    y = {{0}, plan.k * plan.n};
    out = {{0}, plan.m * plan.n};
    plan.x_once = plan.y_once = true;
  }
};

class matmul_kernel final : public kernel {
public:
  explicit matmul_kernel(const attribute_map& attributes)
    : options_(attributes) {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X"), y = float_input(ctx, "Y");
    const stacked_product p(options_, x.dims(), y.dims());
    auto out = float_output(ctx, "Out", p.plan.out);
    queue_stack(stream_of(ctx.queue()),
                {.m = p.plan.m,
                 .n = p.plan.n,
                 .k = p.plan.k,
                 .a = x.data<float>(),
                 .b = y.data<float>(),
                 .c = out.data<float>(),
                 .a_transposed = options_.trans_x,
                 .b_transposed = options_.trans_y},
                p.x, p.y, p.out);
  }

private:
  matmul_options options_;
};

class matmul_grad_kernel final : public kernel {
public:
  explicit matmul_grad_kernel(const attribute_map& attributes)
    : options_(attributes) {}

  void run(kernel_context& ctx) override {
    const auto x = float_input(ctx, "X"), y = float_input(ctx, "Y");
    const auto dout = float_input(ctx, "Out@GRAD");
    const stacked_product p(options_, x.dims(), y.dims());
    if (dout.numel() != p.plan.out.numel())
      require_shape("Out@GRAD", dout.dims(), p.plan.out);
    if (ctx.has_output("X@GRAD"))
      x_gradient(ctx, p, dout, y);
    if (ctx.has_output("Y@GRAD"))
      y_gradient(ctx, p, dout, x);
  }

private:
  /// Zeros, if several products are added up.
  static void begin(cuda_stream& queue, tensor& gradient, bool once) {
    if (!once)
      queue_fill(queue, gradient.data<float>(), gradient.numel(), 0);
  }

  // dX = dOut op(Y)^T, or its transpose.
  void x_gradient(kernel_context& ctx, const stacked_product& p,
                  const tensor& dout, const tensor& y) const {
    auto dx = float_output(ctx, "X@GRAD", p.plan.x);
    auto& queue = stream_of(ctx.queue());
    begin(queue, dx, p.plan.x_once);
    matrix_product each{.m = p.plan.m,
                        .n = p.plan.k,
                        .k = p.plan.n,
                        .a = dout.data<float>(),
                        .b = y.data<float>(),
                        .c = dx.data<float>(),
                        .b_transposed = !options_.trans_y,
                        .adds = !p.plan.x_once};
    if (!options_.trans_x)
      return queue_stack(queue, each, p.out, p.y, p.x);
    each.m = p.plan.k;
    each.n = p.plan.m;
    each.a = y.data<float>();
    each.b = dout.data<float>();
    each.a_transposed = options_.trans_y;
    each.b_transposed = true;
    queue_stack(queue, each, p.y, p.out, p.x);
  }

  // dY = op(X)^T dOut, or its transpose.
  void y_gradient(kernel_context& ctx, const stacked_product& p,
                  const tensor& dout, const tensor& x) const {
    auto dy = float_output(ctx, "Y@GRAD", p.plan.y);
    auto& queue = stream_of(ctx.queue());
    begin(queue, dy, p.plan.y_once);
    matrix_product each{.m = p.plan.k,
                        .n = p.plan.n,
                        .k = p.plan.m,
                        .a = x.data<float>(),
                        .b = dout.data<float>(),
                        .c = dy.data<float>(),
                        .a_transposed = !options_.trans_x,
                        .adds = !p.plan.y_once};
    if (!options_.trans_y)
      return queue_stack(queue, each, p.x, p.out, p.y);
    each.m = p.plan.n;
    each.n = p.plan.k;
    each.a = dout.data<float>();
    each.b = x.data<float>();
    each.a_transposed = true;
    each.b_transposed = options_.trans_x;
    queue_stack(queue, each, p.out, p.x, p.y);
  }

  matmul_options options_;
};

} // namespace

std::unique_ptr<kernel> make_matmul(const attribute_map& attributes) {
  return std::make_unique<matmul_kernel>(attributes);
}

std::unique_ptr<kernel> make_matmul_grad(const attribute_map& attributes) {
  return std::make_unique<matmul_grad_kernel>(attributes);
}

} // namespace troupe::cuda
