// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/trace/analysis/op_graph.hpp>
#include <troupe/trace/analysis/timeline.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::trace {

/// A rank whose ops of a type take longer than those of the other ranks.
struct slow_rank {
  std::uint16_t process = 0; ///< index of the trace
  std::string type;
  double ns = 0;        ///< median over the steps of what they take in a step
  double others_ns = 0; ///< the same of all other ranks
};

/// Compares the time of the ops of a type per step of `timeline::op_steps`,
/// rank by rank. A rank is slow if its median is at least 1.1 times that of the
/// others and by 0.1 ms longer, the quartile ranges do not overlap, and the
/// rank test (rank_test) gives p < 0.01. The largest difference first.
///
/// Left out are ops that merge values, because they wait for other ranks; types
/// of which ranks do not have equally many; and fewer than `least_steps` steps.
std::vector<slow_rank> find_slow_ranks(const timeline& all,
                                       const op_graph& graph);

} // namespace troupe::trace
