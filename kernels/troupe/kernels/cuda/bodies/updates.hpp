// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/bodies/body.hpp>

namespace troupe::cuda {

/// p = p - rate g
struct sgd_update {
  static constexpr const char* name = "sgd";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* p;
    const float* g;
    const float* rate; ///< one number
    float* p_out;
    std::int64_t count;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count())
      a.p_out[i] = a.p[i] - a.rate[0] * a.g[i];
  }
};

/// g = g + decay p; v = mu v + g; p = p - rate v, or, with Nesterov's
/// look-ahead, p - rate (g + mu v)
struct momentum_update {
  static constexpr const char* name = "momentum";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* p;
    const float* g;
    const float* v;
    const float* rate; ///< one number
    float* p_out;
    float* v_out;
    std::int64_t count;
    float mu;
    float decay;
    bool looks_ahead;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    for (auto i = at.index(); i < a.count; i += at.count()) {
      const float g = a.g[i] + a.decay * a.p[i];
      const float v = a.mu * a.v[i] + g;
      a.p_out[i] = a.p[i] - a.rate[0] * (a.looks_ahead ? g + a.mu * v : v);
      a.v_out[i] = v;
    }
  }
};

/// Kingma and Ba, "Adam", 2015, algorithm 1. The powers of beta are read here
/// and advanced by `advance_powers`, later on the same queue.
struct adam_update {
  static constexpr const char* name = "adam";
  static constexpr int phases = 1;
  using shared = nothing_shared;
  struct arguments {
    const float* p;
    const float* g;
    const float* m;
    const float* v;
    const float* rate; ///< one number
    const float* beta1_pow;
    const float* beta2_pow;
    float* p_out;
    float* m_out;
    float* v_out;
    std::int64_t count;
    float beta1;
    float beta2;
    float epsilon;
  };
  TROUPE_BODY static void run(const place& at, const arguments& a, shared&,
                              int) {
    const float correction1 = 1 - a.beta1_pow[0];
    const float correction2 = 1 - a.beta2_pow[0];
    for (auto i = at.index(); i < a.count; i += at.count()) {
      const float g = a.g[i];
      const float m = a.beta1 * a.m[i] + (1 - a.beta1) * g;
      const float v = a.beta2 * a.v[i] + (1 - a.beta2) * g * g;
      a.m_out[i] = m;
      a.v_out[i] = v;
      a.p_out[i] = a.p[i]
                   - a.rate[0] * (m / correction1)
                       / (::sqrtf(v / correction2) + a.epsilon);
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
