// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/product/parallel_product.hpp>

#include <algorithm>
#include <vector>

namespace troupe::cpu {

namespace {

// One product of matrices per element of the broadcast batch shape. Batch b of
// the output is op(X[x_batch[b]]) op(Y[y_batch[b]]).
struct matmul_plan {
  shape x;
  shape y;
  shape out;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::vector<std::int64_t> x_batch;
  std::vector<std::int64_t> y_batch;
  // True if each matrix of X (of Y) is used once: its gradient is no sum over
  // batches.
  bool x_once = true;
  bool y_once = true;
};

// A vector X is a row, a vector Y is a column.
shape as_matrices(const shape& dims, bool row) {
  if (dims.rank() != 1)
    return dims;
  return row ? shape{1, dims[0]} : shape{dims[0], 1};
}

std::vector<std::int64_t> broadcast_batches(const shape& x, const shape& y) {
  const std::size_t rank = std::max(x.rank(), y.rank()) - 2;
  std::vector<std::int64_t> dims(rank);
  const auto extent = [rank](const shape& s, std::size_t axis) {
    const std::size_t missing = rank - (s.rank() - 2);
    return axis < missing ? std::int64_t{1} : s[axis - missing];
  };
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t a = extent(x, i);
    const std::int64_t b = extent(y, i);
    if (a != b && a != 1 && b != 1)
      throw_shapes("X", x, "Y", y, "batch extents differ");
    dims[i] = a == 1 ? b : a;
  }
  return dims;
}

// For each output batch, the index of the matrix of `operand` that it reads.
std::vector<std::int64_t> batch_index(const shape& operand,
                                      const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> index{0};
  const std::size_t missing = dims.size() - (operand.rank() - 2);
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const std::int64_t extent = axis < missing ? 1 : operand[axis - missing];
    std::vector<std::int64_t> next;
    for (const std::int64_t base : index)
      for (std::int64_t i = 0; i < dims[axis]; ++i)
        next.push_back(base * extent + (extent == 1 ? 0 : i));
    index = std::move(next);
  }
  return index;
}

class matmul_base : public kernel {
public:
  explicit matmul_base(const attribute_map& attributes)
    : trans_x_(attributes.get_bool("trans_x",
                                   attributes.get_bool("transpose_X", false))),
      trans_y_(attributes.get_bool("trans_y",
                                   attributes.get_bool("transpose_Y", false))),
      flips_vectors_(attributes.has("transpose_X")
                     || attributes.has("transpose_Y")),
      alpha_(attributes.get_float("alpha", 1.0f)) {}

protected:
  const matmul_plan& plan(const shape& x, const shape& y) {
    if (!planned_ || !(plan_.x == x) || !(plan_.y == y))
      plan_ = make_plan(x, y);
    planned_ = true;
    return plan_;
  }

  // If all batches share one Y and X is not transposed, the batches of X are
  // just more rows.
  bool folds_into_rows(const matmul_plan& p) const {
    return !trans_x_ && p.y.rank() <= 2 && p.x.rank() > 2;
  }

  template <class T>
  matrix_of<T> x_matrix(const matmul_plan& p, const T* data, bool flip) const {
    return {data, trans_x_ ? p.m : p.k, trans_x_ != flip};
  }
  template <class T>
  matrix_of<T> y_matrix(const matmul_plan& p, const T* data, bool flip) const {
    return {data, trans_y_ ? p.k : p.n, trans_y_ != flip};
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
    if (alpha_ == 1.0f)
      return;
    for (T& each : product.values<T>())
      each = static_cast<T>(each * static_cast<T>(alpha_));
  }

  bool trans_x_;
  bool trans_y_;

private:
  matmul_plan make_plan(const shape& x_dims, const shape& y_dims) const;

  // The first version of the op transposes vectors, too.
  bool flips_vectors_;
  float alpha_;
  matmul_plan plan_;
  bool planned_ = false;
};

// A row has no extent m, a column no extent n.
shape squeezed_output(std::vector<std::int64_t> batches, bool row, bool column,
                      std::int64_t m, std::int64_t n) {
  if (!row)
    batches.push_back(m);
  if (!column)
    batches.push_back(n);
  return shape(batches);
}

matmul_plan matmul_base::make_plan(const shape& x_dims,
                                   const shape& y_dims) const {
  if (x_dims.rank() == 0 || y_dims.rank() == 0)
    throw_shapes("X", x_dims, "Y", y_dims, "a scalar cannot be multiplied");
  const shape x = as_matrices(x_dims, flips_vectors_ || !trans_x_);
  const shape y = as_matrices(y_dims, !flips_vectors_ && trans_y_);
  matmul_plan p;
  p.x = x_dims;
  p.y = y_dims;
  p.m = x.dim(trans_x_ ? -1 : -2);
  p.k = x.dim(trans_x_ ? -2 : -1);
  p.n = y.dim(trans_y_ ? -2 : -1);
  if (p.k != y.dim(trans_y_ ? -1 : -2))
    throw_shapes("X", x_dims, "Y", y_dims, "inner extents differ");
  const auto batches = broadcast_batches(x, y);
  p.x_batch = batch_index(x, batches);
  p.y_batch = batch_index(y, batches);
  const auto count = static_cast<std::int64_t>(p.x_batch.size());
  p.x_once = x.numel(0, x.rank() - 2) == count;
  p.y_once = y.numel(0, y.rank() - 2) == count;
  const bool row = x_dims.rank() == 1 && !(flips_vectors_ && trans_x_);
  const bool column = y_dims.rank() == 1 && !(flips_vectors_ && trans_y_);
  p.out = squeezed_output(batches, row, column, p.m, p.n);
  return p;
}

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
    if (folds_into_rows(p))
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
    if (folds_into_rows(p)) {
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
    if (trans_x_)
      product.run(ctx, p.k, rows, p.n, y_matrix(p, y, false), transposed, beta,
                  dx, rows);
    else
      product.run(ctx, rows, p.k, p.n, d, y_matrix(p, y, true), beta, dx, p.k);
  }

  template <class T>
  void y_gradient(kernel_context& ctx, const matmul_plan& p, const T* dout,
                  const T* x, tensor& dy) {
    T* to = dy.data<T>();
    if (folds_into_rows(p)) {
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
    if (trans_y_)
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
