// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/losses.hpp>

namespace troupe::cuda {

/// The sum of all parts, in the order of threads. For one thread.
TROUPE_BODY float sum_of_parts(const float* part, std::uint32_t threads) {
  float sum = 0;
  for (std::uint32_t t = 0; t < threads; ++t)
    sum += part[t];
  return sum;
}

/// A tensor seen as [samples, channels, pixels].
struct channel_layout {
  std::int64_t samples;
  std::int64_t channels;
  std::int64_t pixels;

  /// Where element `i` of channel `c` is.
  TROUPE_BODY std::int64_t offset(std::int64_t c, std::int64_t i) const {
    return (i / pixels * channels + c) * pixels + i % pixels;
  }
  TROUPE_BODY std::int64_t channel_of(std::int64_t offset) const {
    return offset / pixels % channels;
  }
  TROUPE_BODY std::int64_t per_channel() const { return samples * pixels; }
  TROUPE_BODY std::int64_t count() const { return samples * channels * pixels; }
};

/// Mean and inverse standard deviation of each channel, and the running
/// statistics. A block per channel.
struct batch_statistics {
  static constexpr const char* name = "batch_norm";
  static constexpr int phases = 4;
  using shared = block_parts;
  struct arguments {
    const float* x;
    const float* running_mean;
    const float* running_variance;
    float* mean;    ///< [channels]
    float* inverse; ///< [channels]: 1 / sqrt(variance + epsilon)
    float* mean_out;
    float* variance_out;
    float keep; ///< of the running statistics
    float epsilon;
    channel_layout layout;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared& s,
                              int phase) {
    const auto c = at.block;
    const auto n = a.layout.per_channel();
    if (phase == 0) {
      float sum = 0;
      for (std::int64_t i = at.thread; i < n; i += at.threads)
        sum += a.x[a.layout.offset(c, i)];
      s.part[at.thread] = sum;
    } else if (phase == 2) {
      float sum = 0;
      for (std::int64_t i = at.thread; i < n; i += at.threads) {
        const float d = a.x[a.layout.offset(c, i)] - s.total;
        sum += d * d;
      }
      s.part[at.thread] = sum;
    } else if (at.thread == 0) {
      const auto mean =
        sum_of_parts(s.part, at.threads) / static_cast<float>(n);
      if (phase == 1)
        s.total = mean;
      else
        write(a, c, s.total, mean);
    }
  }

  TROUPE_BODY static void write(const arguments& a, std::int64_t c, float mean,
                                float variance) {
    a.mean[c] = mean;
    a.inverse[c] = 1 / ::sqrtf(variance + a.epsilon);
    a.mean_out[c] = a.keep * a.running_mean[c] + (1 - a.keep) * mean;
    a.variance_out[c] =
      a.keep * a.running_variance[c] + (1 - a.keep) * variance;
  }
};

/// inverse[i] = 1 / sqrt(variance[i] + epsilon)
struct invert_variance {
  static constexpr const char* name = "batch_norm";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* variance;
    float* inverse;
    std::int64_t count;
    float epsilon;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.inverse[i] = 1 / ::sqrtf(a.variance[i] + a.epsilon);
  }
};

/// y = (x - mean) * inverse * scale + bias, by channel
struct normalize_channels {
  static constexpr const char* name = "batch_norm";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    const float* mean;
    const float* inverse;
    const float* scale; ///< null: 1
    const float* bias;  ///< null: 0
    float* y;
    channel_layout layout;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    const auto count = a.layout.count();
    for (auto i = at.index(); i < count; i += at.count()) {
      const auto c = a.layout.channel_of(i);
      a.y[i] =
        (a.x[i] - a.mean[c]) * a.inverse[c] * (a.scale ? a.scale[c] : 1.0f)
        + (a.bias ? a.bias[c] : 0.0f);
    }
  }
};

/// Sums of dy and of dy * xhat, the gradients of bias and scale. A block per
/// channel, or per column of a row-wise norm.
struct norm_parameter_gradients {
  static constexpr const char* name = "batch_norm_grad";
  static constexpr int phases = 2;
  struct shared {
    float dot[most_threads];
    float total[most_threads];
  };
  struct arguments {
    const float* x;
    const float* dy;
    const float* mean;
    const float* inverse;
    float* dscale;
    float* dbias;
    channel_layout layout;
    bool by_sample; ///< mean and inverse are those of samples, not of channels
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared& s,
                              int phase) {
    const auto c = at.block;
    if (phase == 0) {
      float dot = 0, total = 0;
      for (std::int64_t i = at.thread; i < a.layout.per_channel();
           i += at.threads) {
        const auto o = a.layout.offset(c, i);
        const auto of = a.by_sample ? i : c;
        dot += a.dy[o] * ((a.x[o] - a.mean[of]) * a.inverse[of]);
        total += a.dy[o];
      }
      s.dot[at.thread] = dot;
      s.total[at.thread] = total;
    } else if (at.thread == 0) {
      a.dscale[c] = sum_of_parts(s.dot, at.threads);
      a.dbias[c] = sum_of_parts(s.total, at.threads);
    }
  }
};

/// dx = scale inverse (dy - mean(dy) - xhat mean(dy xhat)); with given
/// statistics, dx = scale inverse dy
struct batch_norm_input_gradient {
  static constexpr const char* name = "batch_norm_grad";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    const float* dy;
    const float* mean;
    const float* inverse;
    const float* scale;  ///< null: 1
    const float* dscale; ///< sum(dy xhat)
    const float* dbias;  ///< sum(dy)
    float* dx;
    float share; ///< 1 / elements per channel; 0: given statistics
    channel_layout layout;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    const auto count = a.layout.count();
    for (auto i = at.index(); i < count; i += at.count()) {
      const auto c = a.layout.channel_of(i);
      const float xhat = (a.x[i] - a.mean[c]) * a.inverse[c];
      a.dx[i] =
        (a.scale ? a.scale[c] : 1.0f) * a.inverse[c]
        * (a.dy[i] - a.share * a.dbias[c] - a.share * a.dscale[c] * xhat);
    }
  }
};

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and
/// the variance of each row. A block per row.
struct normalize_rows {
  static constexpr const char* name = "layer_norm";
  static constexpr int phases = 5;
  using shared = block_parts;
  struct arguments {
    const float* x;     ///< [rows, width]
    const float* scale; ///< [width]; null: 1
    const float* bias;  ///< [width]; null: 0
    float* y;
    float* mean;     ///< [rows]
    float* variance; ///< [rows]
    std::int64_t width;
    float epsilon;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared& s,
                              int phase) {
    const auto first = at.block * a.width;
    const auto* x = a.x + first;
    if (phase == 0 || phase == 2) {
      const float around = phase == 2 ? s.most : 0;
      float sum = 0;
      for (std::int64_t i = at.thread; i < a.width; i += at.threads) {
        const float d = x[i] - around;
        sum += phase == 2 ? d * d : d;
      }
      s.part[at.thread] = sum;
    } else if (phase == 4) {
      const float inverse = 1 / ::sqrtf(s.total + a.epsilon);
      for (std::int64_t i = at.thread; i < a.width; i += at.threads)
        a.y[first + i] =
          (x[i] - s.most) * inverse * (a.scale ? a.scale[i] : 1.0f)
          + (a.bias ? a.bias[i] : 0.0f);
    } else if (at.thread == 0) {
      const auto width = static_cast<float>(a.width > 0 ? a.width : 1);
      const float found = sum_of_parts(s.part, at.threads) / width;
      (phase == 1 ? s.most : s.total) = found;
      (phase == 1 ? a.mean : a.variance)[at.block] = found;
    }
  }
};

/// With g = dy scale: dx = inverse (g - mean(g) - xhat mean(g xhat)). A block
/// per row.
struct layer_norm_input_gradient {
  static constexpr const char* name = "layer_norm_grad";
  static constexpr int phases = 3;
  struct shared {
    float g[most_threads];
    float g_xhat[most_threads];
    float mean_g;
    float mean_g_xhat;
  };
  struct arguments {
    const float* x; ///< [rows, width]
    const float* dy;
    const float* mean;    ///< [rows]
    const float* inverse; ///< [rows]
    const float* scale;   ///< [width]; null: 1
    float* dx;
    std::int64_t width;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared& s,
                              int phase) {
    const auto first = at.block * a.width;
    const float mean = a.mean[at.block], inverse = a.inverse[at.block];
    if (phase == 1) {
      if (at.thread > 0)
        return;
      const auto width = static_cast<float>(a.width);
      s.mean_g = sum_of_parts(s.g, at.threads) / width;
      s.mean_g_xhat = sum_of_parts(s.g_xhat, at.threads) / width;
      return;
    }
    float sum = 0, sum_xhat = 0;
    for (std::int64_t i = at.thread; i < a.width; i += at.threads) {
      const float xhat = (a.x[first + i] - mean) * inverse;
      const float g = a.dy[first + i] * (a.scale ? a.scale[i] : 1.0f);
      if (phase == 2)
        a.dx[first + i] = inverse * (g - s.mean_g - xhat * s.mean_g_xhat);
      sum += g;
      sum_xhat += g * xhat;
    }
    if (phase > 0)
      return;
    s.g[at.thread] = sum;
    s.g_xhat[at.thread] = sum_xhat;
  }
};

} // namespace troupe::cuda
