// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/rows.hpp>

namespace troupe::cuda {

// Updates of a parameter by one of the gradients in rows.hpp. Outputs may be
// the inputs. Elements that the gradient leaves out are not written.

/// p = p - rate g
template <class Gradient>
struct sgd_update {
  static constexpr const char* name = "sgd";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    Gradient gradient;
    const float* p;
    const float* rate; ///< one number
    float* p_out;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto n = at.index(); n < a.gradient.count; n += at.count()) {
      const auto g = a.gradient.element(n);
      if (g.at >= 0)
        a.p_out[g.at] = a.p[g.at] - a.rate[0] * g.value;
    }
  }
};

/// g = rescale g + decay p; v = mu v + g; p = p - rate v, or, with Nesterov's
/// look-ahead, p - rate (g + mu v)
template <class Gradient>
struct momentum_update {
  static constexpr const char* name = "momentum";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    Gradient gradient;
    const float* p;
    const float* v;
    const float* rate; ///< one number
    float* p_out;
    float* v_out;
    float mu;
    float rescale;
    float decay;
    bool looks_ahead;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto n = at.index(); n < a.gradient.count; n += at.count()) {
      const auto found = a.gradient.element(n);
      const auto i = found.at;
      if (i < 0)
        continue;
      const float g = a.rescale * found.value + a.decay * a.p[i];
      const float v = a.mu * a.v[i] + g;
      a.p_out[i] = a.p[i] - a.rate[0] * (a.looks_ahead ? g + a.mu * v : v);
      a.v_out[i] = v;
    }
  }
};

/// Kingma and Ba, "Adam", 2015, algorithm 1. The powers of beta are read here
/// and advanced by `advance_powers`, later on the same queue.
///
/// Two things are as in Paddle's kernel for rows: it may read powers that are
/// already advanced (`ahead1`, `ahead2`), and it does not scale epsilon for
/// rows that are missing.
template <class Gradient>
struct adam_update {
  static constexpr const char* name = "adam";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    Gradient gradient;
    const float* p;
    const float* m;
    const float* v;
    const float* rate; ///< one number
    const float* beta1_pow;
    const float* beta2_pow;
    float* p_out;
    float* m_out;
    float* v_out;
    float beta1;
    float beta2;
    float epsilon;
    float ahead1; ///< a factor of the power: 1 or beta
    float ahead2;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    const float correction1 = 1 - a.beta1_pow[0] * a.ahead1;
    const float correction2 = 1 - a.beta2_pow[0] * a.ahead2;
    for (auto n = at.index(); n < a.gradient.count; n += at.count()) {
      const auto found = a.gradient.element(n);
      const auto i = found.at;
      if (i < 0)
        continue;
      const float g = found.value;
      const float m = a.beta1 * a.m[i] + (1 - a.beta1) * g;
      const float v = a.beta2 * a.v[i] + (1 - a.beta2) * g * g;
      const float epsilon =
        found.is_missing ? a.epsilon / ::sqrtf(correction2) : a.epsilon;
      a.m_out[i] = m;
      a.v_out[i] = v;
      a.p_out[i] =
        a.p[i]
        - a.rate[0] * (m / correction1) / (::sqrtf(v / correction2) + epsilon);
    }
  }
};

/// Both powers of beta, times beta. One thread.
struct advance_powers {
  static constexpr const char* name = "adam";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* beta1_pow;
    const float* beta2_pow;
    float* beta1_out; ///< null: not wanted
    float* beta2_out;
    float beta1;
    float beta2;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    if (at.index() > 0)
      return;
    if (a.beta1_out)
      a.beta1_out[0] = a.beta1_pow[0] * a.beta1;
    if (a.beta2_out)
      a.beta2_out[0] = a.beta2_pow[0] * a.beta2;
  }
};

} // namespace troupe::cuda
