// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/attribute.hpp>
#include <troupe/kernels/shape.hpp>

#include <cstdint>
#include <vector>

namespace troupe {

/// The attributes of matmul, matmul_v2 and their gradients.
struct matmul_options {
  explicit matmul_options(const attribute_map& attributes);

  bool trans_x;
  bool trans_y;
  /// The first version of the op transposes vectors, too.
  bool flips_vectors;
  /// Factor of the product, which the first version of the op has.
  float alpha;
};

/// One product of matrices per element of the broadcast batch shape. Batch b of
/// the output is op(X[x_batch[b]]) op(Y[y_batch[b]]).
struct matmul_plan {
  shape x;
  shape y;
  shape out;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::vector<std::int64_t> x_batch;
  std::vector<std::int64_t> y_batch;
  /// True if each matrix of X (of Y) is used once: its gradient is no sum over
  /// batches.
  bool x_once = true;
  bool y_once = true;

  /// True if the batches of X are just more rows: all batches share one Y, and
  /// X is not transposed.
  bool folds_into_rows(const matmul_options& o) const {
    return !o.trans_x && y.rank() <= 2 && x.rank() > 2;
  }
};

/// Throws error(shape_mismatch).
matmul_plan make_matmul_plan(const matmul_options& options, const shape& x,
                             const shape& y);

} // namespace troupe
