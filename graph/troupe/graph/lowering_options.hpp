// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::graph {

/// How a program becomes a graph: which passes rewrite it, and how gradients
/// are merged. Users choose what they want; a backend keeps what its devices
/// and kernels can do (actors/backend/backend.hpp). The defaults are what
/// usually pays.
///
/// Unless said otherwise, results are the same bit by bit with a pass and
/// without.
struct lowering_options {
  /// Batch norms that train take their statistics over all devices, so that
  /// several compute what one does on the whole batch. Without, only ops of
  /// type sync_batch_norm do. Changes results. Not with merge_strategy::none.
  bool sync_batch_norm = false;
  /// Sums over devices are taken in the order of the devices.
  bool deterministic = true;
  /// Dense gradients of one dtype that follow each other in the order of
  /// collectives are merged by one all_reduce up to this many bytes in sum;
  /// 0: one each.
  std::size_t fuse_all_reduce_bytes = 256 * 1024;
  /// Samples of a step over all devices, if known; 0: unknown. Which passes
  /// pay depends on it; steps may have others.
  std::int64_t batch = 0;

  /// Batch norms, sums and relus run as one op, and so do their gradients,
  /// where nobody fetches what is between (passes/fuse_batch_norm.hpp).
  bool fuse_batch_norms = true;
  /// The backward pass computes the output of a batch norm with a relu behind
  /// it again instead of keeping it (passes/recompute_activations.hpp).
  bool recompute_activations = true;
  /// Values of which only the shape is read later give their memory back early
  /// (passes/shape_inputs.hpp).
  bool separate_shape_inputs = true;
  /// Gradients of activations and softmax overwrite the gradient that they read
  /// if nobody else reads it (passes/write_in_place.hpp).
  bool write_in_place = true;
  /// Filters that only convolutions read, and the state of their updates, stay
  /// in the layout of convolutions from step to step
  /// (passes/filters_in_blocks.hpp). An executor's `parameters` are then plain
  /// only after `synchronize_parameters`: read no elements before. Not over
  /// processes.
  bool filters_in_blocks = false;
  /// Devices that share their memory use one copy of what at most one of them
  /// writes: with the strategies reduce and replicate parameters are not
  /// broadcast. Not over processes.
  bool share_parameters = true;
  /// One of the devices that share their memory makes the gradient of a large
  /// matrix from the samples of all of them, where that moves fewer bytes than
  /// merging what each makes (merging/gathered_product.hpp). Not over
  /// processes. Results differ by rounding.
  bool gather_products = true;
  /// With the strategies reduce and replicate, updates on such devices merge or
  /// gather the gradients that they alone read (merging/merging_update.hpp).
  /// Not over processes.
  bool merge_in_updates = true;

  /// No pass at all: the graph of the program as it is written.
  static lowering_options none() {
    lowering_options o;
    o.fuse_batch_norms = o.recompute_activations = o.separate_shape_inputs =
      o.write_in_place = o.filters_in_blocks = o.share_parameters =
        o.gather_products = o.merge_in_updates = false;
    return o;
  }
};

} // namespace troupe::graph
