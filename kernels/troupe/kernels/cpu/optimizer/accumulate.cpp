// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>
#include <troupe/kernels/cpu/optimizer/merged_rows.hpp>
#include <troupe/kernels/cpu/simd/simd.hpp>

#include <troupe/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::cpu {

namespace {

TROUPE_SIMD void add_weighted(float* sum, const float* g, float weight,
                              std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    sum[i] += weight * g[i];
}

TROUPE_SIMD void mean_of_both(float* out, const float* sum, const float* g,
                              float weight, float scale, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = (sum[i] + weight * g[i]) * scale;
}

TROUPE_SIMD void multiply(float* out, const float* x, float factor,
                          std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = x[i] * factor;
}

/// What a step's gradients count by.
enum class unit { batch_samples, shard_samples, steps };

unit unit_of(const attribute_map& attributes) {
  const auto name = attributes.get_string("unit", "batch_samples");
  if (name == "batch_samples")
    return unit::batch_samples;
  return name == "shard_samples" ? unit::shard_samples : unit::steps;
}

bool is_elementwise(const tensor& value) {
  return value.is_plain() || value.format()->is_permutation();
}

bool same_format(const tensor& a, const tensor& b) {
  return a.is_plain() ? b.is_plain()
                      : !b.is_plain() && a.format()->equals(*b.format());
}

/// How much each step of an update counts: relative to the first one that
/// counts, so that steps of the same size are added up without rounding.
class step_weights {
public:
  void add(double amount) {
    if (first_ == 0)
      first_ = amount;
    latest_ = amount;
    total_ += amount;
  }
  float of_latest() const {
    return static_cast<float>(first_ == 0 ? 0 : latest_ / first_);
  }
  /// Makes the weighted sum a mean.
  float scale() const {
    return static_cast<float>(total_ == 0 ? 0 : first_ / total_);
  }

private:
  double first_ = 0;
  double latest_ = 0;
  double total_ = 0;
};

// Adds up a gradient over the steps of an update, and gives the mean in the
// last one. The first gradient's memory becomes that of the sum, so the first
// step costs nothing. In steps without an update the gradient is left without a
// value. A device without samples has no gradient and adds nothing. Selected
// rows are kept apart and joined in the last step; repeated rows are as good as
// their sum.
class accumulate_kernel final : public kernel {
public:
  explicit accumulate_kernel(const attribute_map& attributes)
    : unit_(unit_of(attributes)) {}

  void run(kernel_context& ctx) override {
    const auto& step = ctx.step();
    if (step.begins_update)
      forget();
    weights_.add(amount_of(step));
    variable& gradient = ctx.output_variable("Out");
    if (gradient.has_value())
      require_one_kind(gradient);
    if (step.ends_update) {
      give_mean(ctx, gradient);
      forget();
    } else if (gradient.has_value()) {
      keep(ctx, gradient);
      gradient.clear();
    }
  }

private:
  struct weighted_rows {
    selected_rows value;
    float weight;
  };

  double amount_of(const step_info& step) const {
    switch (unit_) {
    case unit::batch_samples: return static_cast<double>(step.batch_samples);
    case unit::shard_samples: return static_cast<double>(step.shard_samples);
    case unit::steps: break;
    }
    return 1;
  }

  void forget() {
    weights_ = {};
    sum_ = {};
    rows_.clear();
  }

  void require_one_kind(const variable& gradient) const {
    if (gradient.is_rows() ? static_cast<bool>(sum_) : !rows_.empty())
      throw error(errc::kernel_failure,
                  "X is a tensor in one step of an update and selected rows in "
                  "another");
  }

  void keep(const kernel_context& ctx, variable& gradient) {
    const float weight = weights_.of_latest();
    if (gradient.is_rows()) {
      rows_.push_back({std::move(gradient.as_rows()), weight});
      return;
    }
    tensor& held = gradient.as_tensor();
    require_type("X", held.type(), dtype::float32);
    if (sum_)
      add(ctx, held, weight);
    else
      begin_sum(ctx, held, weight);
  }

  void begin_sum(const kernel_context& ctx, tensor& held, float weight) {
    if (!held.is_shared() && is_elementwise(held))
      sum_ = std::move(held);
    else
      sum_ = clone(held, ctx.on().memory());
    if (weight != 1.0f)
      scale_in_place(ctx, sum_, weight);
  }

  void add(const kernel_context& ctx, const tensor& held, float weight) {
    const tensor g = in_format_of_sum(ctx, held);
    in_ranges(ctx, sum_.numel(), [&](std::int64_t at, std::int64_t n) {
      add_weighted(sum_.data<float>() + at, g.data<float>() + at, weight, n);
    });
  }

  void give_mean(const kernel_context& ctx, variable& gradient) {
    const float weight = weights_.of_latest();
    const float scale = weights_.scale();
    if (gradient.is_rows())
      rows_.push_back({std::move(gradient.as_rows()), weight});
    if (!rows_.empty())
      return gradient.set(joined(ctx, scale));
    if (gradient.has_value()) {
      require_type("X", gradient.as_tensor().type(), dtype::float32);
      give_mean_of(ctx, gradient.as_tensor(), weight, scale);
    } else if (sum_) {
      scale_in_place(ctx, sum_, scale);
      gradient.set(std::move(sum_));
    }
  }

  void give_mean_of(const kernel_context& ctx, const tensor& held, float weight,
                    float scale) {
    if (!sum_ && weight * scale == 1.0f)
      return;
    const tensor g =
      sum_ ? in_format_of_sum(ctx, held) : elementwise(ctx, held);
    tensor out = output_like(ctx, "Out", g);
    in_ranges(ctx, out.numel(), [&](std::int64_t at, std::int64_t n) {
      float* to = out.data<float>() + at;
      const float* from = g.data<float>() + at;
      if (sum_)
        mean_of_both(to, sum_.data<float>() + at, from, weight, scale, n);
      else
        multiply(to, from, weight * scale, n);
    });
  }

  static void scale_in_place(const kernel_context& ctx, tensor& value,
                             float factor) {
    in_ranges(ctx, value.numel(), [&](std::int64_t at, std::int64_t n) {
      float* to = value.data<float>() + at;
      multiply(to, to, factor, n);
    });
  }

  /// `value` itself, or a plain copy if its layout has padding.
  static tensor elementwise(const kernel_context& ctx, const tensor& value) {
    return is_elementwise(value) ? value : clone(value, ctx.on().memory());
  }

  /// A step of another size may have got another layout. Then both become
  /// plain.
  tensor in_format_of_sum(const kernel_context& ctx, const tensor& held) {
    require_shape("X", held.dims(), sum_.dims());
    if (is_elementwise(held) && same_format(held, sum_))
      return held;
    auto& memory = ctx.on().memory();
    if (!sum_.is_plain())
      sum_ = clone(sum_, memory);
    return held.is_plain() ? held : clone(held, memory);
  }

  selected_rows joined(const kernel_context& ctx, float scale) {
    selected_rows all;
    all.height = rows_.front().value.height;
    shape dims;
    for (auto& [value, weight] : rows_) {
      require_rows("X", value);
      if (value.height != all.height)
        throw error(errc::shape_mismatch,
                    "X has " + std::to_string(value.height)
                      + " rows in one step of an update and "
                      + std::to_string(all.height) + " in another");
      all.rows.insert(all.rows.end(), value.rows.begin(), value.rows.end());
      if (!value.values)
        continue;
      auto row = value.values.dims();
      row[0] = 1;
      if (dims.rank() != 0)
        require_shape("X", row, dims);
      dims = row;
    }
    if (dims.rank() == 0) // no step has touched a row
      return all;
    dims[0] = static_cast<std::int64_t>(all.rows.size());
    all.values = tensor::make(ctx.on().memory(), dims, dtype::float32);
    float* to = all.values.data<float>();
    for (auto& [value, weight] : rows_) {
      if (!value.values)
        continue;
      const auto count = value.values.numel();
      multiply(to, value.values.data<float>(), weight * scale, count);
      to += count;
    }
    return all;
  }

  unit unit_;
  // Of the steps of the current update.
  step_weights weights_;
  tensor sum_; // no memory: nothing yet
  std::vector<weighted_rows> rows_;
};

} // namespace

std::unique_ptr<kernel> make_accumulate(const attribute_map& attributes) {
  return std::make_unique<accumulate_kernel>(attributes);
}

} // namespace troupe::cpu
