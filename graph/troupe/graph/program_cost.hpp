// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/op_schema.hpp>
#include <troupe/graph/program.hpp>

#include <cstdint>
#include <vector>

namespace troupe::graph {

/// The minimum work of an op or a step.
struct work {
  double flops = 0; ///< floating-point operations in products
  double bytes = 0; ///< moved between memory and processor

  friend work operator+(const work& a, const work& b) {
    return {a.flops + b.flops, a.bytes + b.bytes};
  }
};

/// The work of a program's main block, op by op.
struct program_cost {
  std::vector<work> ops; ///< one per op of the block, in order

  work total() const;
};

/// How fast a machine computes and moves data. Source: Williams, Waterman and
/// Patterson, "Roofline: an insightful visual performance model", CACM 2009.
struct roofline {
  double flops_per_s = 0;
  double bytes_per_s = 0;

  /// Minimum time of `w` in seconds: computing or moving data, whichever is
  /// longer.
  double seconds(const work& w) const;
  /// Time in seconds of a step whose ops run one after another, each in its
  /// minimum time.
  double seconds(const program_cost& cost) const;
};

/// Counts the work of one step on `batch` samples.
///
/// FLOPs are counted for products: convolutions (also transposed ones), mul,
/// matmul, matmul_v2 and bmm, and the same number for each gradient that their
/// gradient ops compute. A multiplication and an addition count as two. All
/// other ops count only as moving data.
///
/// Bytes: each value is written once and read once by each op that reads it, at
/// its size in memory. Exceptions keep the count below what good kernels move:
/// - a value that only one op reads does not count if that op or its producer
///   is elementwise, because it can stay in registers;
/// - ops that only change a value's shape move nothing, and neither does a
///   gradient that equals another one (of an addition);
/// - a lookup, its gradient, and sgd with a sparse gradient move only the rows
///   that are looked up.
/// Caching between ops is not taken into account.
///
/// Ops of other blocks (branches, loops) do not count. An unknown extent that
/// does not follow from the feeds counts as `batch`. Throws what `infer_shapes`
/// throws.
program_cost count_cost(const program& p, std::int64_t batch,
                        const op_schema_table& schemas = op_schemas());

} // namespace troupe::graph
