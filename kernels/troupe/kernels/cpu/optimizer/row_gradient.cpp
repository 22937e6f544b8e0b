// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/optimizer/row_gradient.hpp>

#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/optimizer/merged_rows.hpp>
#include <troupe/kernels/cpu/optimizer/updated_tensor.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>
#include <troupe/kernels/row_order.hpp>

#include <algorithm>

namespace troupe::cpu {

void row_gradient::read(const kernel_context& ctx, const shape& dims,
                        const std::shared_ptr<const layout>& format,
                        repeated_rows repeated) {
  size_ = dims.numel();
  clear();
  if (ctx.num_inputs("Out@GRAD") > 0)
    return read_factors(ctx, dims);
  const variable& grad = ctx.input_variable("Grad");
  if (ctx.num_inputs("Grad") > 1)
    return read_sum(ctx, dims, format);
  if (!grad.is_rows())
    return read_dense(ctx, dims, format, 0);
  width_ = dims.rank() == 0 ? 1 : dims.numel(1, dims.rank());
  check(grad.as_rows(), dims);
  height_ = grad.as_rows().height;
  zeros_.resize(static_cast<std::size_t>(width_));
  if (repeated == repeated_rows::keep)
    keep(grad.as_rows());
  else
    merge(ctx, grad.as_rows());
}

void row_gradient::clear() noexcept {
  dense_.clear();
  factors_.clear();
  sums_ = {};
  rows_.clear();
}

void row_gradient::read_sum(const kernel_context& ctx, const shape& dims,
                            const std::shared_ptr<const layout>& format) {
  for (std::size_t i = 0; i < ctx.num_inputs("Grad"); ++i)
    if (ctx.input_variable("Grad", i).has_value())
      read_dense(ctx, dims, format, i);
}

void row_gradient::read_dense(const kernel_context& ctx, const shape& dims,
                              const std::shared_ptr<const layout>& format,
                              std::size_t index) {
  const auto& term = dense_.emplace_back(input_in(ctx, "Grad", format, index));
  if (term.numel() != size_)
    throw_shapes("Grad", term.dims(), "Param", dims, "shapes differ");
}

void row_gradient::read_factors(const kernel_context& ctx, const shape& dims) {
  const auto split = ctx.attributes().get_int("y_num_col_dims", 1);
  if (split < 1 || split >= static_cast<std::int64_t>(dims.rank()))
    throw_shape("Param", dims,
                "cannot be split into a matrix by its num_col_dims attribute");
  height_ = dims.numel(0, static_cast<std::size_t>(split));
  width_ = dims.numel(static_cast<std::size_t>(split), dims.rank());
  for (std::size_t i = 0; i < ctx.num_inputs("X"); ++i) {
    if (!ctx.input_variable("X", i).has_value())
      continue;
    auto& f = factors_.emplace_back(float_input(ctx, "X", i),
                                    float_input(ctx, "Out@GRAD", i));
    f.samples = f.x.numel() / std::max<std::int64_t>(1, height_);
    if (f.x.numel() != f.samples * height_)
      throw_shapes("X", f.x.dims(), "Param", dims,
                   "columns of X differ from rows of Param");
    if (f.dout.numel() != f.samples * width_)
      throw_shapes("Out@GRAD", f.dout.dims(), "Param", dims,
                   "columns of Out@GRAD differ from those of Param");
  }
}

// Memory for one piece at a time. It is kept, because pieces are made in every
// step.
float* row_gradient::worker_memory(std::int64_t elements) {
  thread_local std::vector<float> memory;
  if (const auto size = static_cast<std::size_t>(elements);
      memory.size() < size)
    memory.resize(size);
  return memory.data();
}

void row_gradient::add_up_dense(std::int64_t first, std::int64_t count,
                                float* sum) const {
  const auto part = [&](std::size_t i) {
    return dense_[i].data<float>() + first;
  };
  add(sum, part(0), part(1), count);
  for (std::size_t i = 2; i < dense_.size(); ++i)
    add(sum, sum, part(i), count);
}

void row_gradient::check(const selected_rows& grad, const shape& dims) const {
  require_rows("Grad", grad);
  const auto count = static_cast<std::int64_t>(grad.rows.size());
  if (dims.rank() == 0 || grad.height != dims[0]
      || (count > 0 && grad.values.numel() != count * width_))
    throw_shapes("Grad", grad.values.dims(), "Param", dims,
                 "the rows are not rows of the parameter");
}

void row_gradient::keep(const selected_rows& grad) {
  if (grad.rows.empty())
    return;
  const float* values = grad.values.data<float>();
  for (const std::int64_t row : grad.rows) {
    rows_.push_back({row, values});
    values += width_;
  }
}

void row_gradient::merge(const kernel_context& ctx, const selected_rows& grad) {
  const auto& rows = grad.rows;
  if (rows.empty())
    return;
  const float* values = grad.values.data<float>();
  order_rows(rows, grad.height, order_);
  const auto row_of = [&](std::int64_t i) {
    return rows[static_cast<std::size_t>(i)];
  };
  sums_ = ctx.scratch(grad.values.numel());
  for (std::size_t first = 0; first < order_.size();) {
    std::size_t last = first + 1;
    while (last < order_.size()
           && row_of(order_[last]) == row_of(order_[first]))
      ++last;
    const float* merged = values + order_[first] * width_;
    if (last - first > 1) {
      float* sum =
        sums_.data<float>() + static_cast<std::int64_t>(first) * width_;
      add_up(values, first, last, sum);
      merged = sum;
    }
    rows_.push_back({row_of(order_[first]), merged});
    first = last;
  }
}

void row_gradient::add_up(const float* values, std::size_t first,
                          std::size_t last, float* sum) {
  copy(sum, values + order_[first] * width_, width_);
  for (std::size_t i = first + 1; i < last; ++i)
    accumulate(sum, values + order_[i] * width_, 1.0f, width_);
}

} // namespace troupe::cpu
