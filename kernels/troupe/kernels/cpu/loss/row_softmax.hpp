// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// log(sum(exp(x))) = largest + log_total; two numbers for precision.
template <class T>
struct softmax_total {
  T largest = T(0);
  T log_total = T(0);
};

/// out = softmax of the row x [n]. `out` may be `x`.
softmax_total<float> row_softmax(float* out, const float* x, std::int64_t n);
softmax_total<double> row_softmax(double* out, const double* x, std::int64_t n);

/// Sum of a[i] * b[i].
float row_dot(const float* a, const float* b, std::int64_t n);
double row_dot(const double* a, const double* b, std::int64_t n);

/// Paddle's softmax treats logits as at most 64 below the largest one, so a
/// loss is at most 64 + log(classes).
template <class T>
T clip_logit(T below_largest) {
  return below_largest < T(-64) ? T(-64) : below_largest;
}

} // namespace troupe::cpu
