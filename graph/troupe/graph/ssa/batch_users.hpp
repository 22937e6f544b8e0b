// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_graph.hpp>

namespace troupe::graph {

/// Lets the ops that need to know the whole batch wait for the graph's
/// count_samples, by edges of kind `order`. These ops are the loss scale and
/// those forward ops whose kernels read which samples the shard has
/// (`op_schema::uses_batch`), such as dropout. Ops with sub-blocks, and types
/// without a schema, may have such kernels. Backward ops need no edges: they
/// come after the loss scale, or after the forward ops whose outputs they read.
void order_batch_users(ssa_graph& g);

} // namespace troupe::graph
