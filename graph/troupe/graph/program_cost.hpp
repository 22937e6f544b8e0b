// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/op_schema.hpp>
#include <troupe/graph/program.hpp>

#include <cstdint>
#include <vector>

namespace troupe::graph {

/// What an op, or a step, has to do at least.
struct work {
  double flops = 0; ///< floating-point operations of products
  double bytes = 0; ///< between memory and processor

  friend work operator+(const work& a, const work& b) {
    return {a.flops + b.flops, a.bytes + b.bytes};
  }
};

/// The work of a program's main block, op by op.
struct program_cost {
  std::vector<work> ops; ///< one per op of the block, in its order

  work total() const;
};

/// How fast a machine computes and moves data. Source: Williams, Waterman and
/// Patterson, "Roofline: an insightful visual performance model", CACM 2009.
struct roofline {
  double flops_per_s = 0;
  double bytes_per_s = 0;

  /// Seconds that `w` takes at least: the longer of computing and moving.
  double seconds(const work& w) const;
  /// Seconds of a step whose ops run one after another, each on its roof.
  double seconds(const program_cost& cost) const;
};

/// Counts the work of one step on `batch` samples.
///
/// FLOPs are those of products: convolutions (also transposed ones), mul,
/// matmul, matmul_v2, bmm, and as many again for each gradient that their
/// gradient ops make; a multiplication and an addition are two. All else counts
/// as moving data.
///
/// Bytes: each value of the step is written once by the op that makes it and
/// read once by each op that reads it, at its size in memory, with exceptions
/// that let the count stay below what good kernels move:
/// - a value that only one op reads stays in registers if that op or its maker
///   works element by element: it counts nothing;
/// - ops that merely look at a value in another shape, and a gradient that
///   equals another (of an addition), move nothing;
/// - a lookup and its gradient touch the rows that are looked up, and so does
///   sgd with a sparse gradient.
/// What stays in a cache from op to op is not taken into account.
///
/// Ops of other blocks (branches, loops) count nothing; an extent that is
/// unknown and does not follow from the feeds counts as `batch`. Throws what
/// `infer_shapes` throws.
program_cost count_cost(const program& p, std::int64_t batch,
                        const op_schema_table& schemas = op_schemas());

} // namespace troupe::graph
