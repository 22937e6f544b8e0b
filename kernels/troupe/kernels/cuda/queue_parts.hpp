// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cuda/cuda_stream.hpp>
#include <troupe/kernels/plans/broadcast_plan.hpp>

namespace troupe::cuda {

// What several kernels for CUDA devices queue.

/// A broadcast as bodies take it.
inline pairing pairing_of(const broadcast_plan& plan) {
  pairing made{};
  for (auto& axis : plan.axes()) {
    made.extent[made.axes] = axis.extent;
    made.x_step[made.axes] = axis.x_step;
    made.y_step[made.axes] = axis.y_step;
    ++made.axes;
  }
  return made;
}

/// Queues `count` times `value`.
inline void queue_fill(cuda_stream& queue, float* to, std::int64_t count,
                       float value) {
  queue.run_for_each<fill<float>>(count, {to, count, value});
}

/// Queues a copy of all elements, unless both are the same memory.
inline void queue_copy(cuda_stream& queue, const tensor& from, tensor& to) {
  if (from.raw() != to.raw() && from.bytes() > 0)
    queue.copy(to.raw(), from.raw(), from.bytes());
}

/// Queues products; no extent need be positive.
inline void queue_products(cuda_stream& queue, const matrix_product& p) {
  if (p.m == 0 || p.n == 0 || p.count == 0)
    return;
  if (p.k > 0)
    return queue.multiply(p);
  for (std::int64_t i = 0; i < p.count && !p.adds; ++i)
    queue_fill(queue, p.c + i * p.c_step, p.m * p.n, 0);
}

} // namespace troupe::cuda
