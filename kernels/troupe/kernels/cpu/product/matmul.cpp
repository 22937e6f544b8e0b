// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/product/parallel_product.hpp>
#include <troupe/kernels/plans/matmul_plan.hpp>

#include <algorithm>
#include <vector>

namespace troupe::cpu {

namespace {

class matmul_base : public kernel {
public:
  explicit matmul_base(const attribute_map& attributes)
    : options_(attributes) {}

protected:
  const matmul_plan& plan(const shape& x, const shape& y) {
    if (!planned_ || !(plan_.x == x) || !(plan_.y == y))
      plan_ = make_matmul_plan(options_, x, y);
    planned_ = true;
    return plan_;
  }

  template <class T>
  matrix_of<T> x_matrix(const matmul_plan& p, const T* data, bool flip) const {
    return {data, options_.trans_x ? p.m : p.k, options_.trans_x != flip};
  }
  template <class T>
  matrix_of<T> y_matrix(const matmul_plan& p, const T* data, bool flip) const {
    return {data, options_.trans_y ? p.k : p.n, options_.trans_y != flip};
  }

  // Calls `one(product, b)` for each batch b. Workers share the batches. If
  // there are few batches, or several add to the same place, they share each
  // product instead.
  template <class One>
  static void for_each_product(kernel_context& ctx, parallel_product& products,
                               const matmul_plan& p, bool in_different_places,
                               One one) {
    const auto batches = p.x_batch.size();
    if (in_different_places && batches >= ctx.workers())
      return products.run_each(ctx, static_cast<std::int64_t>(batches),
                               p.m * p.n * p.k,
                               [&](product& each, std::int64_t b) {
                                 one(each, static_cast<std::size_t>(b));
                               });
    for (std::size_t b = 0; b < batches; ++b)
      one(products, b);
  }

  // Multiplies by attribute alpha, which the first version of the op has.
  template <class T>
  void scale(tensor& product) const {
    if (options_.alpha == 1.0f)
      return;
    for (T& each : product.values<T>())
      each = static_cast<T>(each * static_cast<T>(options_.alpha));
  }

  matmul_options options_;

private:
  matmul_plan plan_;
  bool planned_ = false;
};

class matmul_kernel final : public matmul_base {
public:
  matmul_kernel(const attribute_map& attributes, precision factors)
    : matmul_base(attributes), product_(factors) {}

  void run(kernel_context& ctx) override {
    const tensor x = ctx.input("X");
    const tensor y = ctx.input("Y");
    require_type("Y", y.type(), x.type());
    const matmul_plan& p = plan(x.dims(), y.dims());
    for_number_type("X", x.type(), [&]<class T>(T) {
      tensor out = ctx.output("Out", p.out, x.type());
      multiply(ctx, p, x.data<T>(), y.data<T>(), out.data<T>());
      scale<T>(out);
    });
  }

private:
  template <class T>
  void multiply(kernel_context& ctx, const matmul_plan& p, const T* x,
                const T* y, T* out) {
    const auto batches = static_cast<std::int64_t>(p.x_batch.size());
    if (p.folds_into_rows(options_))
      return multiply_one(ctx, product_, p, batches * p.m, x, y, out);
    for_each_product(ctx, product_, p, true, [&](auto& product, std::size_t b) {
      multiply_one(ctx, product, p, p.m, x + p.x_batch[b] * p.m * p.k,
                   y + p.y_batch[b] * p.k * p.n,
                   out + static_cast<std::int64_t>(b) * p.m * p.n);
    });
  }

  template <class Product, class T>
  void multiply_one(kernel_context& ctx, Product& product, const matmul_plan& p,
                    std::int64_t rows, const T* x, const T* y, T* out) {
    product.run(ctx, rows, p.n, p.k, x_matrix(p, x, false),
                y_matrix(p, y, false), T(0), out, p.n);
  }

  parallel_product product_;
};

class matmul_grad_kernel final : public matmul_base {
public:
  matmul_grad_kernel(const attribute_map& attributes, precision factors)
    : matmul_base(attributes), for_x_(factors), for_y_(factors) {}

  void run(kernel_context& ctx) override {
    const tensor x = ctx.input("X");
    const tensor y = ctx.input("Y");
    const tensor dout = ctx.input("Out@GRAD");
    require_type("Y", y.type(), x.type());
    require_type("Out@GRAD", dout.type(), x.type());
    const matmul_plan& p = plan(x.dims(), y.dims());
    if (dout.numel() != p.out.numel())
      require_shape("Out@GRAD", dout.dims(), p.out);
    for_number_type<false>("X", x.type(), [&]<class T>(T) {
      if (ctx.has_output("X@GRAD")) {
        tensor dx = ctx.output("X@GRAD", p.x, x.type());
        x_gradient(ctx, p, dout.data<T>(), y.data<T>(), dx);
        scale<T>(dx);
      }
      if (ctx.has_output("Y@GRAD")) {
        tensor dy = ctx.output("Y@GRAD", p.y, x.type());
        y_gradient(ctx, p, dout.data<T>(), x.data<T>(), dy);
        scale<T>(dy);
      }
    });
  }

private:
  template <class T>
  void x_gradient(kernel_context& ctx, const matmul_plan& p, const T* dout,
                  const T* y, tensor& dx) {
    T* to = dx.data<T>();
    if (p.folds_into_rows(options_)) {
      const auto batches = static_cast<std::int64_t>(p.x_batch.size());
      return x_gradient_one(ctx, for_x_, p, batches * p.m, dout, y, T(0), to);
    }
    if (!p.x_once)
      std::fill_n(to, dx.numel(), T(0));
    for_each_product(
      ctx, for_x_, p, p.x_once, [&](auto& product, std::size_t b) {
        x_gradient_one(ctx, product, p, p.m,
                       dout + static_cast<std::int64_t>(b) * p.m * p.n,
                       y + p.y_batch[b] * p.k * p.n, p.x_once ? T(0) : T(1),
                       to + p.x_batch[b] * p.m * p.k);
      });
  }

  // dX = dOut op(Y)^T, or its transpose.
  template <class Product, class T>
  void x_gradient_one(kernel_context& ctx, Product& product,
                      const matmul_plan& p, std::int64_t rows, const T* dout,
                      const T* y, T beta, T* dx) {
    const matrix_of<T> d{dout, p.n};
    const matrix_of<T> transposed{dout, p.n, true};
    if (options_.trans_x)
      product.run(ctx, p.k, rows, p.n, y_matrix(p, y, false), transposed, beta,
                  dx, rows);
    else
      product.run(ctx, rows, p.k, p.n, d, y_matrix(p, y, true), beta, dx, p.k);
  }

  template <class T>
  void y_gradient(kernel_context& ctx, const matmul_plan& p, const T* dout,
                  const T* x, tensor& dy) {
    T* to = dy.data<T>();
    if (p.folds_into_rows(options_)) {
      const auto batches = static_cast<std::int64_t>(p.x_batch.size());
      return y_gradient_one(ctx, for_y_, p, batches * p.m, dout, x, T(0), to);
    }
    if (!p.y_once)
      std::fill_n(to, dy.numel(), T(0));
    for_each_product(
      ctx, for_y_, p, p.y_once, [&](auto& product, std::size_t b) {
        y_gradient_one(ctx, product, p, p.m,
                       dout + static_cast<std::int64_t>(b) * p.m * p.n,
                       x + p.x_batch[b] * p.m * p.k, p.y_once ? T(0) : T(1),
                       to + p.y_batch[b] * p.k * p.n);
      });
  }

  // dY = op(X)^T dOut, or its transpose.
  template <class Product, class T>
  void y_gradient_one(kernel_context& ctx, Product& product,
                      const matmul_plan& p, std::int64_t rows, const T* dout,
                      const T* x, T beta, T* dy) {
    const matrix_of<T> d{dout, p.n};
    const matrix_of<T> transposed{dout, p.n, true};
    if (options_.trans_y)
      product.run(ctx, p.n, p.k, rows, transposed, x_matrix(p, x, false), beta,
                  dy, p.k);
    else
      product.run(ctx, p.k, p.n, rows, x_matrix(p, x, true), d, beta, dy, p.n);
  }

  parallel_product for_x_;
  parallel_product for_y_;
};

} // namespace

std::unique_ptr<kernel> make_matmul(const attribute_map& attributes,
                                    const kernel_options& options) {
  return std::make_unique<matmul_kernel>(attributes, options.factors);
}

std::unique_ptr<kernel> make_matmul_grad(const attribute_map& attributes,
                                         const kernel_options& options) {
  return std::make_unique<matmul_grad_kernel>(attributes, options.factors);
}

} // namespace troupe::cpu
