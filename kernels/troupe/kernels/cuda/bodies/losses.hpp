// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/body.hpp>

namespace troupe::cuda {

/// Parts of a sum or of a maximum, one per thread of a block. Thread 0 combines
/// them in the order of threads, so results do not depend on which runs first.
struct block_parts {
  float part[most_threads];
  float most;
  float total;
};

/// out = softmax(x), with x - max(x) at least -64, as in Paddle. Optionally the
/// loss -log(out[label]).
struct softmax_rows {
  static constexpr const char* name = "softmax";
  static constexpr int phases = 5;
  using shared = block_parts;
  struct arguments {
    const float* x;            ///< [rows, width]
    float* out;                ///< the same
    float* loss;               ///< [rows]; null: none
    const std::int64_t* label; ///< [rows]
    fault_report* fault;
    std::int64_t rows;
    std::int64_t width;
    std::int64_t ignored; ///< the label of rows that have no loss
  };

  TROUPE_BODY static float at_least(float x) { return x < -64.0f ? -64.0f : x; }

  // A block per row.
  TROUPE_BODY static void run(const place& at, const arguments& a, shared& s,
                              int phase) {
    if (at.block >= a.rows)
      return;
    const auto* x = a.x + at.block * a.width;
    auto* out = a.out + at.block * a.width;
    switch (phase) {
    case 0: {
      float most = x[0];
      for (std::int64_t i = at.thread; i < a.width; i += at.threads)
        most = x[i] > most ? x[i] : most;
      s.part[at.thread] = most;
      break;
    }
    case 1:
      if (at.thread == 0) {
        float most = s.part[0];
        for (std::uint32_t t = 1; t < at.threads; ++t)
          most = s.part[t] > most ? s.part[t] : most;
        s.most = most;
      }
      break;
    case 2: {
      float sum = 0;
      for (std::int64_t i = at.thread; i < a.width; i += at.threads)
        sum += ::expf(x[i] - s.most);
      s.part[at.thread] = sum;
      break;
    }
    case 3:
      if (at.thread == 0) {
        float sum = 0;
        for (std::uint32_t t = 0; t < at.threads; ++t)
          sum += s.part[t];
        s.total = ::logf(sum);
        if (a.loss)
          a.loss[at.block] = loss_of(a, at.block, x, s);
      }
      break;
    default:
      for (std::int64_t i = at.thread; i < a.width; i += at.threads)
        out[i] = ::expf(at_least(x[i] - s.most) - s.total);
    }
  }

  TROUPE_BODY static float loss_of(const arguments& a, std::int64_t row,
                                   const float* x, const shared& s) {
    const auto label = a.label[row];
    if (label == a.ignored)
      return 0;
    if (label < 0 || label >= a.width) {
      a.fault->note(fault_report::bad_label, label, a.width);
      return 0;
    }
    return s.total - at_least(x[label] - s.most);
  }
};

/// dx = dloss * (p - the label's distribution), for the loss of softmax_rows
struct cross_entropy_gradient {
  static constexpr const char* name = "softmax_with_cross_entropy_grad";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* p;     ///< [rows, width]
    const float* dloss; ///< [rows]
    const std::int64_t* label;
    float* dx;
    std::int64_t rows;
    std::int64_t width;
    std::int64_t ignored;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.rows * a.width; i += at.count()) {
      const auto row = i / a.width, column = i % a.width;
      const auto label = a.label[row];
      a.dx[i] = label == a.ignored
                  ? 0
                  : a.dloss[row] * (a.p[i] - (label == column ? 1.0f : 0.0f));
    }
  }
};

/// dx = out * (dout - sum(dout * out)), by row
struct softmax_gradient {
  static constexpr const char* name = "softmax_grad";
  static constexpr int phases = 3;
  using shared = block_parts;
  struct arguments {
    const float* out; ///< [rows, width]
    const float* dout;
    float* dx;
    std::int64_t rows;
    std::int64_t width;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared& s,
                              int phase) {
    if (at.block >= a.rows)
      return;
    const auto first = at.block * a.width;
    if (phase == 0) {
      float sum = 0;
      for (std::int64_t i = at.thread; i < a.width; i += at.threads)
        sum += a.dout[first + i] * a.out[first + i];
      s.part[at.thread] = sum;
    } else if (phase == 1) {
      if (at.thread > 0)
        return;
      s.total = 0;
      for (std::uint32_t t = 0; t < at.threads; ++t)
        s.total += s.part[t];
    } else {
      for (std::int64_t i = at.thread; i < a.width; i += at.threads)
        a.dx[first + i] = a.out[first + i] * (a.dout[first + i] - s.total);
    }
  }
};

/// out[i] = -log of the probability that logit x[i] gives to label[i], a
/// number in [0, 1]; 0 for the label that is ignored
struct sigmoid_cross_entropy {
  static constexpr const char* name = "sigmoid_cross_entropy_with_logits";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    const float* label;
    float* out;
    std::int64_t count;
    float ignored;
  };
  TROUPE_BODY static bool is_ignored(float label, float ignored) {
    return ::fabsf(label - ignored) < 1e-6f;
  }
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      const float x = a.x[i], y = a.label[i];
      const float loss =
        (x > 0 ? x : 0.0f) - x * y + ::logf(1 + ::expf(-::fabsf(x)));
      a.out[i] = is_ignored(y, a.ignored) ? 0.0f : loss;
    }
  }
};

/// dx[i] = dout[i] * (sigmoid(x[i]) - label[i]); 0 for the label that is
/// ignored
struct sigmoid_cross_entropy_gradient {
  static constexpr const char* name = "sigmoid_cross_entropy_with_logits_grad";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;
    const float* label;
    const float* dout;
    float* dx;
    std::int64_t count;
    std::int64_t dout_step; ///< 0: all elements have one
    float ignored;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      const float slope = 1 / (1 + ::expf(-a.x[i])) - a.label[i];
      a.dx[i] = sigmoid_cross_entropy::is_ignored(a.label[i], a.ignored)
                  ? 0.0f
                  : a.dout[i * a.dout_step] * slope;
    }
  }
};

/// out[0] = factor * the sum of x. One block.
struct sum_all {
  static constexpr const char* name = "mean";
  static constexpr int phases = 2;
  using shared = block_parts;
  struct arguments {
    const float* x;
    float* out;
    std::int64_t count;
    float factor;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared& s,
                              int phase) {
    if (phase == 0) {
      float sum = 0;
      for (auto i = at.index(); i < a.count; i += at.count())
        sum += a.x[i];
      s.part[at.thread] = sum;
    } else if (at.thread == 0) {
      float sum = 0;
      for (std::uint32_t t = 0; t < at.threads; ++t)
        sum += s.part[t];
      a.out[0] = a.factor * sum;
    }
  }
};

/// out[0] = the sum of the squares of x. One block.
struct sum_squares {
  static constexpr const char* name = "squared_l2_norm";
  static constexpr int phases = 2;
  using shared = block_parts;
  struct arguments {
    const float* x;
    float* out;
    std::int64_t count;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared& s,
                              int phase) {
    if (phase == 0) {
      float sum = 0;
      for (auto i = at.index(); i < a.count; i += at.count())
        sum += a.x[i] * a.x[i];
      s.part[at.thread] = sum;
    } else if (at.thread == 0) {
      float sum = 0;
      for (std::uint32_t t = 0; t < at.threads; ++t)
        sum += s.part[t];
      a.out[0] = sum;
    }
  }
};

/// dx[i] = factor * dout[0]
struct spread {
  static constexpr const char* name = "mean_grad";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* dout;
    float* dx;
    std::int64_t count;
    float factor;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.dx[i] = a.factor * a.dout[0];
  }
};

/// The k best elements of each row, best first; of equal ones the first. A
/// thread per row, because k is small.
struct best_of_rows {
  static constexpr const char* name = "top_k_v2";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* x;        ///< [rows, width]
    float* out;            ///< [rows, k]
    std::int64_t* indices; ///< [rows, k]
    std::int64_t rows;
    std::int64_t width;
    std::int64_t k;
    float sign; ///< 1: the largest; -1: the smallest
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto row = at.index(); row < a.rows; row += at.count()) {
      const auto* x = a.x + row * a.width;
      auto* out = a.out + row * a.k;
      auto* indices = a.indices + row * a.k;
      for (std::int64_t n = 0; n < a.k; ++n) {
        std::int64_t best = -1;
        for (std::int64_t i = 0; i < a.width; ++i)
          if (follows(a, x, indices, n, i)
              && (best < 0 || a.sign * x[i] > a.sign * x[best]))
            best = i;
        if (best < 0) // a NaN is neither before nor after others
          best = n;
        indices[n] = best;
        out[n] = x[best];
      }
    }
  }

  /// True if element `i` is not among the `n` that were chosen before.
  TROUPE_BODY static bool follows(const arguments& a, const float* x,
                                  const std::int64_t* indices, std::int64_t n,
                                  std::int64_t i) {
    if (n == 0)
      return true;
    const auto last = indices[n - 1];
    const auto of_last = a.sign * x[last], of_this = a.sign * x[i];
    return of_this < of_last || (of_this == of_last && i > last);
  }
};

/// How many rows have their label among their k indices. One block.
struct count_right {
  static constexpr const char* name = "accuracy";
  static constexpr int phases = 2;
  using shared = block_parts;
  struct arguments {
    const std::int64_t* indices; ///< [rows, k]
    const std::int64_t* label;   ///< [rows]
    float* share;
    std::int32_t* right;
    std::int32_t* total;
    std::int64_t rows;
    std::int64_t k;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared& s,
                              int phase) {
    if (phase == 0) {
      float right = 0;
      for (auto row = at.index(); row < a.rows; row += at.count())
        right += is_right(a, row) ? 1.0f : 0.0f;
      s.part[at.thread] = right;
    } else if (at.thread == 0) {
      std::int64_t right = 0;
      for (std::uint32_t t = 0; t < at.threads; ++t)
        right += static_cast<std::int64_t>(s.part[t]);
      a.right[0] = static_cast<std::int32_t>(right);
      a.total[0] = static_cast<std::int32_t>(a.rows);
      a.share[0] = a.rows == 0
                     ? 0.0f
                     : static_cast<float>(right) / static_cast<float>(a.rows);
    }
  }
  TROUPE_BODY static bool is_right(const arguments& a, std::int64_t row) {
    for (std::int64_t i = 0; i < a.k; ++i)
      if (a.indices[row * a.k + i] == a.label[row])
        return true;
    return false;
  }
};

} // namespace troupe::cuda
