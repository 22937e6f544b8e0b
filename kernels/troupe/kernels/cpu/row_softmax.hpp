// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace troupe::cpu {

/// log(sum(exp(x))) = largest + log_total, kept apart for precision.
struct softmax_total {
  float largest = 0.0f;
  float log_total = 0.0f;
};

/// out = softmax of the row x [n]. `out` may be `x`.
softmax_total row_softmax(float* out, const float* x, std::int64_t n);

/// Sum of a[i] * b[i].
float row_dot(const float* a, const float* b, std::int64_t n);

} // namespace troupe::cpu
