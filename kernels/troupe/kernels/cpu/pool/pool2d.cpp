// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/layout/channel_blocks.hpp>
#include <troupe/kernels/cpu/layout/image_layout.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/cpu/pool/blocked_pool.hpp>
#include <troupe/kernels/cpu/pool/pool_2x2.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>
#include <troupe/kernels/plans/pool_plan.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace troupe::cpu {

namespace {

// The maximum of a window that covers only padding.
constexpr float lowest = -std::numeric_limits<float>::max();

// Takes one element of each window of a row: for window i, x[i * stride]. NaN
// wins.
TROUPE_INLINE void max_step(float* best, const float* x, std::int64_t n,
                            std::int64_t stride) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i * stride];
    best[i] = v > best[i] || v != v ? v : best[i];
  }
}

TROUPE_INLINE void argmax_step(float* best, std::int32_t* index, const float* x,
                               std::int64_t n, std::int64_t stride,
                               std::int32_t first) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float v = x[i * stride];
    const bool better = v > best[i] || v != v;
    best[i] = better ? v : best[i];
    index[i] =
      better ? first + static_cast<std::int32_t>(i * stride) : index[i];
  }
}

TROUPE_INLINE void sum_step(float* total, const float* x, std::int64_t n,
                            std::int64_t stride) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    total[i] += x[i * stride];
}

TROUPE_INLINE void spread_step(float* dx, const float* d, std::int64_t n,
                               std::int64_t stride) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    dx[i * stride] += d[i];
}

// Strides 1 and 2 are passed as constants, so that the loops vectorise. Other
// strides are rare.
TROUPE_SIMD void max_row(float* best, const float* x, std::int64_t n,
                         std::int64_t stride) {
  if (stride == 1)
    max_step(best, x, n, 1);
  else if (stride == 2)
    max_step(best, x, n, 2);
  else
    max_step(best, x, n, stride);
}

TROUPE_SIMD void argmax_row(float* best, std::int32_t* index, const float* x,
                            std::int64_t n, std::int64_t stride,
                            std::int32_t first) {
  if (stride == 1)
    argmax_step(best, index, x, n, 1, first);
  else if (stride == 2)
    argmax_step(best, index, x, n, 2, first);
  else
    argmax_step(best, index, x, n, stride, first);
}

TROUPE_SIMD void sum_row(float* total, const float* x, std::int64_t n,
                         std::int64_t stride) {
  if (stride == 1)
    sum_step(total, x, n, 1);
  else if (stride == 2)
    sum_step(total, x, n, 2);
  else
    sum_step(total, x, n, stride);
}

TROUPE_SIMD void spread_row(float* dx, const float* d, std::int64_t n,
                            std::int64_t stride) {
  if (stride == 1)
    spread_step(dx, d, n, 1);
  else
    spread_step(dx, d, n, stride);
}

TROUPE_SIMD void divide_row(float* out, const float* x, const float* divisor,
                            float factor, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = x[i] / (divisor[i] * factor);
}

class pool_base : public kernel {
public:
  explicit pool_base(const attribute_map& attributes)
    : options_(attributes),
      channels_last_(has_channels_last(attributes, "data_format")) {}

protected:
  bool lies_in_blocks(const kernel_context& ctx, std::string_view slot) const {
    return !channels_last_ && block_of(held_input(ctx, slot)) > 0;
  }

  // The input with its channels second, whatever the program's layout.
  tensor images(kernel_context& ctx, std::string_view slot) const {
    tensor x = float_input(ctx, slot);
    require_rank(slot, x.dims(), 4);
    return channels_last_ ? with_channels_second(ctx, x) : x;
  }

  // Calls `write(tensor)` with an output of `dims`, which have the channels
  // second.
  template <class Write>
  void write_images(kernel_context& ctx, std::string_view slot,
                    const shape& dims, Write write) const {
    if (!channels_last_) {
      tensor out = float_output(ctx, slot, dims);
      return write(out);
    }
    tensor out = tensor::make(ctx.on().memory(), dims, dtype::float32);
    write(out);
    ctx.output_variable(slot).set(with_channels_last(ctx, out));
  }

  const pool_plan& plan(const shape& in) {
    if (!planned_ || !(plan_.in == in)) {
      plan_ = make_pool_plan(options_, in);
      padded_.assign(static_cast<std::size_t>(plan_.row_size),
                     options_.max ? lowest : 0.0f);
    }
    planned_ = true;
    return plan_;
  }

  // Row `h` of a plane, with the padding that windows reach into.
  const float* padded_row(const pool_plan& p, const float* plane,
                          std::int64_t h) {
    const float* row = plane + h * p.in[3];
    if (!p.pads)
      return row;
    std::copy_n(row, p.in[3], padded_.begin() + p.cols.before);
    return padded_.data();
  }

  bool is_max() const noexcept { return options_.max; }
  bool takes_2x2(const pool_plan& p) const {
    return p.tiles_2x2 && is_max() && cpu::takes_2x2(p.out[3]);
  }

  // Calls `use(plane)`. Workers share the planes only for 2x2 windows, whose
  // loops need no scratch memory.
  template <class Use>
  void for_each_plane(const kernel_context& ctx, const pool_plan& p,
                      std::int64_t plane_size, Use use) const {
    const auto all = [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t i = first; i < first + count; ++i)
        use(i);
    };
    const auto planes = p.in.numel(0, 2);
    if (takes_2x2(p))
      in_rows(ctx, planes, plane_size, all);
    else
      all(0, planes);
  }

  std::vector<float> padded_;

private:
  pool_options options_;
  bool channels_last_;
  pool_plan plan_;
  bool planned_ = false;
};

class pool_kernel final : public pool_base {
public:
  using pool_base::pool_base;
  void run(kernel_context& ctx) override {
    if (lies_in_blocks(ctx, "X"))
      return run_blocked(ctx);
    const tensor x = images(ctx, "X");
    const pool_plan& p = plan(x.dims());
    const std::int64_t in_size = p.in.numel(2, 4);
    const std::int64_t out_size = p.out.numel(2, 4);
    write_images(ctx, "Out", p.out, [&](tensor& out) {
      for_each_plane(ctx, p, in_size, [&](std::int64_t i) {
        plane(p, x.data<float>() + i * in_size,
              out.data<float>() + i * out_size);
      });
    });
  }

private:
  void run_blocked(kernel_context& ctx) {
    const tensor x = held_input(ctx, "X");
    const pool_plan& p = plan(x.dims());
    // A maximum is one of the image's values and stays rounded; a mean has more
    // digits.
    format_.set(p.out, is_max() ? format_of(x) : image_format{block_of(x)});
    tensor out = stored_output(ctx, "Out", p.out, x.type(), format_.get());
    blocked::pool(ctx, p, is_max(), block_of(x), values_of(x), results_of(out));
  }

  void plane(const pool_plan& p, const float* x, float* out) {
    if (p.whole && !is_max())
      *out = static_cast<float>(sum(x, p.in.numel(2, 4)))
             / static_cast<float>(p.in.numel(2, 4));
    else if (takes_2x2(p))
      max_2x2(out, x, p.out[2], p.out[3]);
    else if (p.irregular)
      irregular_plane(p, x, out);
    else
      for (std::int64_t i = 0; i < p.out[2]; ++i)
        row(p, p.row_windows[static_cast<std::size_t>(i)], x,
            out + i * p.out[3]);
  }

  void row(const pool_plan& p, const pool_window& rows, const float* x,
           float* out) {
    fill(out, p.out[3], is_max() ? lowest : 0.0f);
    for (std::int64_t h = rows.first; h < rows.last; ++h) {
      const float* line = padded_row(p, x, h);
      for (std::int64_t j = 0; j < p.cols.extent; ++j)
        (is_max() ? max_row : sum_row)(out, line + j, p.out[3], p.cols.stride);
    }
    if (!is_max())
      divide_row(out, out, p.col_divisors.data(), p.divisor(rows), p.out[3]);
  }

  void irregular_plane(const pool_plan& p, const float* x, float* out) const {
    for (const auto& rows : p.row_windows)
      for (const auto& cols : p.col_windows)
        *out++ = one_window(p, rows, cols, x);
  }

  float one_window(const pool_plan& p, const pool_window& rows,
                   const pool_window& cols, const float* x) const {
    float best = lowest;
    float total = 0.0f;
    for (std::int64_t h = rows.first; h < rows.last; ++h)
      for (std::int64_t w = cols.first; w < cols.last; ++w) {
        const float v = x[h * p.in[3] + w];
        best = v > best || v != v ? v : best;
        total += v;
      }
    return is_max() ? best : total / (p.divisor(rows) * p.divisor(cols));
  }

  kept_format format_;
};

// The gradient of a maximum goes to the first element with that value in the
// window.
class pool_grad_kernel final : public pool_base {
public:
  using pool_base::pool_base;
  void run(kernel_context& ctx) override {
    if (lies_in_blocks(ctx, "X") && lies_in_blocks(ctx, "Out@GRAD"))
      return run_blocked(ctx);
    const tensor x = images(ctx, "X");
    const tensor dout = images(ctx, "Out@GRAD");
    const pool_plan& p = plan(x.dims());
    require_shape("Out@GRAD", dout.dims(), p.out);
    best_.resize(static_cast<std::size_t>(p.out[3]));
    index_.resize(best_.size());
    spread_.resize(padded_.size());
    const std::int64_t in_size = p.in.numel(2, 4);
    const std::int64_t out_size = p.out.numel(2, 4);
    write_images(ctx, "X@GRAD", p.in, [&](tensor& dx) {
      for_each_plane(ctx, p, in_size, [&](std::int64_t i) {
        plane(p, x.data<float>() + i * in_size,
              dout.data<float>() + i * out_size,
              dx.data<float>() + i * in_size);
      });
    });
  }

private:
  void run_blocked(kernel_context& ctx) {
    const tensor x = held_input(ctx, "X");
    const tensor dout = held_input(ctx, "Out@GRAD");
    const pool_plan& p = plan(x.dims());
    require_shape("Out@GRAD", dout.dims(), p.out);
    tensor dx = output_like(ctx, "X@GRAD", x);
    blocked::pool_gradient(ctx, p, is_max(), block_of(x), values_of(x),
                           values_of(dout), results_of(dx));
  }

  void plane(const pool_plan& p, const float* x, const float* dout, float* dx) {
    if (p.whole && !is_max())
      return fill(dx, p.in.numel(2, 4),
                  *dout / static_cast<float>(p.in.numel(2, 4)));
    if (takes_2x2(p))
      return max_2x2_gradient(dx, x, dout, p.out[2], p.out[3]);
    fill(dx, p.in.numel(2, 4), 0.0f);
    if (p.irregular)
      return irregular_plane(p, x, dout, dx);
    for (std::int64_t i = 0; i < p.out[2]; ++i) {
      const auto& rows = p.row_windows[static_cast<std::size_t>(i)];
      if (is_max())
        max_gradient(p, rows, x, dout + i * p.out[3], dx);
      else
        average_gradient(p, rows, dout + i * p.out[3], dx);
    }
  }

  void max_gradient(const pool_plan& p, const pool_window& rows, const float* x,
                    const float* dout, float* dx) {
    std::fill(best_.begin(), best_.end(), lowest);
    std::fill(index_.begin(), index_.end(), -1);
    for (std::int64_t h = rows.first; h < rows.last; ++h) {
      const float* line = padded_row(p, x, h);
      for (std::int64_t j = 0; j < p.cols.extent; ++j)
        argmax_row(best_.data(), index_.data(), line + j, p.out[3],
                   p.cols.stride,
                   static_cast<std::int32_t>(h * p.in[3] + j - p.cols.before));
    }
    for (std::size_t i = 0; i < index_.size(); ++i)
      if (index_[i] >= 0)
        dx[index_[i]] += dout[i];
  }

  void average_gradient(const pool_plan& p, const pool_window& rows,
                        const float* dout, float* dx) {
    divide_row(best_.data(), dout, p.col_divisors.data(), p.divisor(rows),
               p.out[3]);
    std::fill(spread_.begin(), spread_.end(), 0.0f);
    for (std::int64_t j = 0; j < p.cols.extent; ++j)
      spread_row(spread_.data() + j, best_.data(), p.out[3], p.cols.stride);
    for (std::int64_t h = rows.first; h < rows.last; ++h)
      accumulate(dx + h * p.in[3], spread_.data() + p.cols.before, 1.0f,
                 p.in[3]);
  }

  void irregular_plane(const pool_plan& p, const float* x, const float* dout,
                       float* dx) const {
    for (const auto& rows : p.row_windows)
      for (const auto& cols : p.col_windows)
        one_window(p, rows, cols, x, *dout++, dx);
  }

  void one_window(const pool_plan& p, const pool_window& rows,
                  const pool_window& cols, const float* x, float d,
                  float* dx) const {
    const float share = d / (p.divisor(rows) * p.divisor(cols));
    float best = lowest;
    std::int64_t index = -1;
    for (std::int64_t h = rows.first; h < rows.last; ++h)
      for (std::int64_t w = cols.first; w < cols.last; ++w) {
        const std::int64_t at = h * p.in[3] + w;
        if (!is_max())
          dx[at] += share;
        else if (index < 0 || x[at] > best) {
          best = x[at];
          index = at;
        }
      }
    if (is_max() && index >= 0)
      dx[index] += d;
  }

  std::vector<float> best_;
  std::vector<std::int32_t> index_;
  std::vector<float> spread_;
};

} // namespace

std::unique_ptr<kernel> make_pool2d(const attribute_map& attributes) {
  return std::make_unique<pool_kernel>(attributes);
}

std::unique_ptr<kernel> make_pool2d_grad(const attribute_map& attributes) {
  return std::make_unique<pool_grad_kernel>(attributes);
}

} // namespace troupe::cpu
