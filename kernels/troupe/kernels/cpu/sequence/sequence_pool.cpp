// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/loss/row_softmax.hpp>
#include <troupe/kernels/cpu/sequence/sequences.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

namespace troupe::cpu {

namespace {

/// One sequence: `rows` rows of `width` elements from row `first` on.
struct sequence {
  const float* x;
  std::int64_t first, rows, width;
};

void pool_sum(const sequence& s, float* out, std::int32_t*) {
  sum_rows(out, s.x, s.rows, s.width);
}

void pool_average(const sequence& s, float* out, std::int32_t*) {
  sum_rows(out, s.x, s.rows, s.width);
  scale_add(out, out, 1.0f / static_cast<float>(s.rows), 0.0f, s.width);
}

void pool_sqrt(const sequence& s, float* out, std::int32_t*) {
  sum_rows(out, s.x, s.rows, s.width);
  scale_add(out, out, 1.0f / std::sqrt(static_cast<float>(s.rows)), 0.0f,
            s.width);
}

void pool_max(const sequence& s, float* out, std::int32_t* index) {
  copy(out, s.x, s.width);
  std::fill_n(index, s.width, static_cast<std::int32_t>(s.first));
  for (std::int64_t r = 1; r < s.rows; ++r)
    for (std::int64_t i = 0; i < s.width; ++i)
      if (const float value = s.x[r * s.width + i]; value > out[i]) {
        out[i] = value;
        index[i] = static_cast<std::int32_t>(s.first + r);
      }
}

void pool_last(const sequence& s, float* out, std::int32_t*) {
  copy(out, s.x + (s.rows - 1) * s.width, s.width);
}

void pool_first(const sequence& s, float* out, std::int32_t*) {
  copy(out, s.x, s.width);
}

/// Adds to the gradient of a sequence; `dx` points to its first row.
struct sequence_gradient {
  float* dx;
  const float* dout;
  std::int64_t rows, width;
};

void spread(const sequence_gradient& g, float scale) {
  for (std::int64_t r = 0; r < g.rows; ++r)
    scale_add(g.dx + r * g.width, g.dout, scale, 0.0f, g.width);
}

void spread_sum(const sequence_gradient& g) {
  spread(g, 1.0f);
}
void spread_average(const sequence_gradient& g) {
  spread(g, 1.0f / static_cast<float>(g.rows));
}
void spread_sqrt(const sequence_gradient& g) {
  spread(g, 1.0f / std::sqrt(static_cast<float>(g.rows)));
}
void spread_last(const sequence_gradient& g) {
  fill(g.dx, (g.rows - 1) * g.width, 0.0f);
  copy(g.dx + (g.rows - 1) * g.width, g.dout, g.width);
}
void spread_first(const sequence_gradient& g) {
  copy(g.dx, g.dout, g.width);
  fill(g.dx + g.width, (g.rows - 1) * g.width, 0.0f);
}

/// `spread` is null if the gradient follows MaxIndex.
struct pooling {
  std::string_view type;
  void (*pool)(const sequence&, float* out, std::int32_t* index);
  void (*spread)(const sequence_gradient&);
};

constexpr std::array<pooling, 6> poolings = {{
  {"AVERAGE", pool_average, spread_average},
  {"SUM", pool_sum, spread_sum},
  {"SQRT", pool_sqrt, spread_sqrt},
  {"MAX", pool_max, nullptr},
  {"LAST", pool_last, spread_last},
  {"FIRST", pool_first, spread_first},
}};

const pooling& pooling_of(const attribute_map& attributes) {
  const auto type = attributes.get_string("pooltype", "AVERAGE");
  const auto found = std::ranges::find(poolings, type, &pooling::type);
  if (found == poolings.end())
    throw error(errc::invalid_argument,
                "sequence_pool has no pooltype " + type
                  + ": AVERAGE, SUM, SQRT, MAX, LAST, FIRST");
  return *found;
}

class pool_kernel final : public kernel {
public:
  explicit pool_kernel(const attribute_map& attributes)
    : pooling_(pooling_of(attributes)),
      pad_value_(attributes.get_float("pad_value", 0.0f)) {}

  void run(kernel_context& ctx) override {
    const tensor x = float_input(ctx, "X");
    const lod& levels = require_levels(x, "X");
    auto dims = x.dims();
    dims[0] = num_sequences(levels, levels.size() - 1);
    tensor out = float_output(ctx, "Out", dims);
    pool(ctx, x, levels.back(), out);
    if (levels.size() > 1)
      ctx.output_variable("Out").as_tensor().set_levels(
        make_lod({levels.begin(), levels.end() - 1}, dims[0]));
  }

private:
  void pool(kernel_context& ctx, const tensor& x,
            const std::vector<std::uint64_t>& offsets, tensor& out) {
    const auto width = row_elements(x.dims());
    tensor index;
    if (!pooling_.spread)
      index = ctx.has_output("MaxIndex")
                ? ctx.output("MaxIndex", out.dims(), dtype::int32)
                : tensor::make(ctx.on().memory(), out.dims(), dtype::int32);
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      const auto first = static_cast<std::int64_t>(offsets[i]);
      const auto rows = static_cast<std::int64_t>(offsets[i + 1]) - first;
      const auto at = static_cast<std::int64_t>(i) * width;
      auto* chosen = index ? index.data<std::int32_t>() + at : nullptr;
      if (rows > 0) {
        pooling_.pool({x.data<float>() + first * width, first, rows, width},
                      out.data<float>() + at, chosen);
        continue;
      }
      fill(out.data<float>() + at, width, pad_value_);
      if (chosen)
        std::fill_n(chosen, width, -1);
    }
  }

  const pooling& pooling_;
  float pad_value_;
};

class pool_grad_kernel final : public kernel {
public:
  explicit pool_grad_kernel(const attribute_map& attributes)
    : pooling_(pooling_of(attributes)) {}

  void run(kernel_context& ctx) override {
    const tensor x = ctx.input("X");
    const auto& offsets = require_levels(x, "X").back();
    const tensor dout = float_input(ctx, "Out@GRAD");
    auto dims = x.dims();
    dims[0] = static_cast<std::int64_t>(offsets.size()) - 1;
    require_shape("Out@GRAD", dout.dims(), dims);
    tensor dx = float_output(ctx, "X@GRAD", x.dims());
    if (pooling_.spread)
      spread_all(offsets, dout, dx);
    else
      follow_index(ctx, dout, dx);
    ctx.output_variable("X@GRAD").as_tensor().set_levels(x.levels());
  }

private:
  void spread_all(const std::vector<std::uint64_t>& offsets, const tensor& dout,
                  tensor& dx) const {
    const auto width = row_elements(dx.dims());
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      const auto first = static_cast<std::int64_t>(offsets[i]);
      const auto rows = static_cast<std::int64_t>(offsets[i + 1]) - first;
      if (rows > 0)
        pooling_.spread(
          {dx.data<float>() + first * width,
           dout.data<float>() + static_cast<std::int64_t>(i) * width, rows,
           width});
    }
  }

  static void follow_index(const kernel_context& ctx, const tensor& dout,
                           tensor& dx) {
    const tensor index = ctx.input("MaxIndex");
    const index_values row(index, "MaxIndex");
    require_shape("MaxIndex", index.dims(), dout.dims());
    const auto width = row_elements(dx.dims());
    fill(dx.data<float>(), dx.numel(), 0.0f);
    for (std::int64_t i = 0; i < dout.numel(); ++i) {
      if (row[i] >= dx.dims()[0])
        throw error(errc::out_of_range, "row " + std::to_string(row[i])
                                          + " in MaxIndex of sequence_pool");
      if (row[i] >= 0)
        dx.data<float>()[row[i] * width + i % width] = dout.data<float>()[i];
    }
  }

  const pooling& pooling_;
};

void require_one_column(const tensor& x) {
  if (x.numel() != x.dims()[0])
    throw_shape("X", x.dims(), "expected one element a row");
}

} // namespace

std::unique_ptr<kernel> make_sequence_pool(const attribute_map& attributes) {
  return std::make_unique<pool_kernel>(attributes);
}

std::unique_ptr<kernel>
make_sequence_pool_grad(const attribute_map& attributes) {
  return std::make_unique<pool_grad_kernel>(attributes);
}

// Softmax over each sequence of X [rows] or [rows, 1].
void run_sequence_softmax(kernel_context& ctx) {
  const tensor x = float_input(ctx, "X");
  const auto& offsets = require_levels(x, "X").back();
  require_one_column(x);
  tensor out = float_output(ctx, "Out", x.dims());
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const auto first = static_cast<std::int64_t>(offsets[i]);
    const auto rows = static_cast<std::int64_t>(offsets[i + 1]) - first;
    if (rows > 0)
      row_softmax(out.data<float>() + first, x.data<float>() + first, rows);
  }
  ctx.output_variable("Out").as_tensor().set_levels(x.levels());
}

void run_sequence_softmax_grad(kernel_context& ctx) {
  const tensor out = float_input(ctx, "Out");
  const tensor dout = float_input(ctx, "Out@GRAD");
  const tensor x = ctx.input("X");
  const auto& offsets = require_levels(x, "X").back();
  require_one_column(x);
  require_shape("Out@GRAD", dout.dims(), out.dims());
  tensor dx = float_output(ctx, "X@GRAD", x.dims());
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const auto first = static_cast<std::int64_t>(offsets[i]);
    const auto rows = static_cast<std::int64_t>(offsets[i + 1]) - first;
    const float* y = out.data<float>() + first;
    const float* dy = dout.data<float>() + first;
    const float dot = row_dot(y, dy, rows);
    for (std::int64_t r = 0; r < rows; ++r)
      dx.data<float>()[first + r] = y[r] * (dy[r] - dot);
  }
  ctx.output_variable("X@GRAD").as_tensor().set_levels(x.levels());
}

} // namespace troupe::cpu
