// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/product/parallel_product.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace troupe::cpu {

namespace {

// X [rows..., inner...] and Y [inner..., cols...] flattened to matrices.
struct mul_shape {
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t cols = 0;
};

class mul_base : public kernel {
public:
  explicit mul_base(const attribute_map& attributes)
    : x_dims_(attributes.get_int("x_num_col_dims", 1)),
      y_dims_(attributes.get_int("y_num_col_dims", 1)) {}

protected:
  mul_shape flatten(const shape& x, const shape& y) const {
    const std::size_t x_split = split("X", x, x_dims_);
    const std::size_t y_split = split("Y", y, y_dims_);
    const std::int64_t inner = x.numel(x_split, x.rank());
    if (inner != y.numel(0, y_split))
      throw_shapes("X", x, "Y", y, "columns of X differ from rows of Y");
    return {x.numel(0, x_split), inner, y.numel(y_split, y.rank())};
  }

  shape output_shape(const shape& x, const shape& y) const {
    std::array<std::int64_t, 2 * shape::max_rank> dims;
    auto end = std::copy_n(x.begin(), x_dims_, dims.begin());
    end = std::copy(y.begin() + y_dims_, y.end(), end);
    return shape(std::span(dims.begin(), end));
  }

  void require_gradient(const tensor& dout, const mul_shape& s, const tensor& x,
                        const tensor& y) const {
    if (dout.numel() != s.rows * s.cols)
      throw_shape("Out@GRAD", dout.dims(),
                  "expected " + to_string(output_shape(x.dims(), y.dims())));
  }

private:
  static std::size_t split(std::string_view slot, const shape& dims,
                           std::int64_t count) {
    if (count < 1 || count >= static_cast<std::int64_t>(dims.rank()))
      throw_shape(slot, dims,
                  "cannot be split into a matrix by its "
                  "num_col_dims attribute");
    return static_cast<std::size_t>(count);
  }

  std::int64_t x_dims_;
  std::int64_t y_dims_;
};

class mul_kernel final : public mul_base {
public:
  mul_kernel(const attribute_map& attributes, precision factors)
    : mul_base(attributes), product_(factors) {}

  void run(kernel_context& ctx) override {
    const tensor x = ctx.input("X");
    const tensor y = ctx.input("Y");
    require_type("Y", y.type(), x.type());
    const mul_shape s = flatten(x.dims(), y.dims());
    for_number_type<false>("X", x.type(), [&]<class T>(T) {
      tensor out =
        ctx.output("Out", output_shape(x.dims(), y.dims()), x.type());
      product_.run(
        ctx, s.rows, s.cols, s.inner, matrix_of<T>{x.data<T>(), s.inner},
        matrix_of<T>{y.data<T>(), s.cols}, T(0), out.data<T>(), s.cols);
    });
  }

private:
  parallel_product product_;
};

class mul_grad_kernel final : public mul_base {
public:
  mul_grad_kernel(const attribute_map& attributes, precision factors)
    : mul_base(attributes), for_input_(factors), for_weight_(factors) {}

  void run(kernel_context& ctx) override {
    const tensor x = ctx.input("X");
    const tensor y = ctx.input("Y");
    const tensor dout = ctx.input("Out@GRAD");
    require_type("Y", y.type(), x.type());
    require_type("Out@GRAD", dout.type(), x.type());
    const mul_shape s = flatten(x.dims(), y.dims());
    require_gradient(dout, s, x, y);
    for_number_type<false>("X", x.type(), [&]<class T>(T) {
      if (ctx.has_output("X@GRAD"))
        input_gradient<T>(ctx, s, dout, x, y);
      if (ctx.has_output("Y@GRAD"))
        weight_gradient<T>(ctx, s, dout, x, y);
    });
  }

private:
  // dX = dOut Y^T
  template <class T>
  void input_gradient(kernel_context& ctx, const mul_shape& s,
                      const tensor& dout, const tensor& x, const tensor& y) {
    tensor dx = ctx.output("X@GRAD", x.dims(), x.type());
    for_input_.run(
      ctx, s.rows, s.inner, s.cols, matrix_of<T>{dout.data<T>(), s.cols},
      matrix_of<T>{y.data<T>(), s.cols, true}, T(0), dx.data<T>(), s.inner);
  }

  // dY = X^T dOut
  template <class T>
  void weight_gradient(kernel_context& ctx, const mul_shape& s,
                       const tensor& dout, const tensor& x, const tensor& y) {
    tensor dy = ctx.output("Y@GRAD", y.dims(), y.type());
    for_weight_.run(
      ctx, s.inner, s.cols, s.rows, matrix_of<T>{x.data<T>(), s.inner, true},
      matrix_of<T>{dout.data<T>(), s.cols}, T(0), dy.data<T>(), s.cols);
  }

  parallel_product for_input_;
  parallel_product for_weight_;
};

// dY = the sum of X^T dOut over the devices that have samples.
class gathered_mul_grad_kernel final : public mul_base {
public:
  gathered_mul_grad_kernel(const attribute_map& attributes, precision rounding)
    : mul_base(attributes), sum_(rounding) {}

  void run(kernel_context& ctx) override {
    const tensor y = ctx.input("Y");
    read_factors(ctx, y);
    for_number_type<false>("Y", y.type(),
                           [&]<class T>(T) { sum_up<T>(ctx, y); });
    factors_.clear();
  }

private:
  /// The factors of one device's contribution.
  struct device_factors {
    tensor x;
    tensor dout;
    mul_shape extents;
  };

  template <class T>
  void sum_up(kernel_context& ctx, const tensor& y) {
    const auto& s = factors_.front().extents;
    tensor dy = ctx.output("Y@GRAD", y.dims(), y.type());
    const auto term = [this](std::size_t t) {
      const device_factors& f = factors_[t];
      return product_term<T>{f.x.data<T>(), f.dout.data<T>(), f.extents.rows};
    };
    sum_.run_sum(ctx, s.inner, s.cols, factors_.size(), term, dy.data<T>());
    for (std::size_t i = 1; i < ctx.num_outputs("Y@GRAD"); ++i)
      ctx.output_variable("Y@GRAD", i).set(dy.share());
  }

  void read_factors(kernel_context& ctx, const tensor& y) {
    factors_.clear(); // left over if an earlier run failed
    for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i)
      if (ctx.input_variable("X", i).has_value())
        factors_.push_back(factors_of(ctx, i, y));
    if (factors_.empty())
      throw error(errc::kernel_failure, "no device has samples");
  }

  device_factors factors_of(kernel_context& ctx, std::size_t device,
                            const tensor& y) const {
    device_factors f{ctx.input("X", device), ctx.input("Out@GRAD", device), {}};
    require_type("X", f.x.type(), y.type());
    require_type("Out@GRAD", f.dout.type(), y.type());
    f.extents = flatten(f.x.dims(), y.dims());
    require_gradient(f.dout, f.extents, f.x, y);
    return f;
  }

  parallel_product sum_;
  std::vector<device_factors> factors_; // of one run; kept for its memory
};

} // namespace

std::unique_ptr<kernel> make_mul(const attribute_map& attributes,
                                 const kernel_options& options) {
  return std::make_unique<mul_kernel>(attributes, options.factors);
}

std::unique_ptr<kernel> make_mul_grad(const attribute_map& attributes,
                                      const kernel_options& options) {
  return std::make_unique<mul_grad_kernel>(attributes, options.factors);
}

std::unique_ptr<kernel> make_gathered_mul_grad(const attribute_map& attributes,
                                               const kernel_options& options) {
  return std::make_unique<gathered_mul_grad_kernel>(attributes,
                                                    options.factors);
}

} // namespace troupe::cpu
