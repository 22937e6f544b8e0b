// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/passes/sync_batch_norm.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// How gradients of several devices become one update.
enum class merge_strategy : std::uint8_t {
  all_reduce, ///< every device gets every merged gradient and runs every update
  reduce,     ///< each parameter has a home device that updates and broadcasts
  replicate,  ///< device 0 is home to all parameters (PyTorch's DataParallel)
  none,       ///< no merging: devices train apart on their shards
};

std::string_view to_string(merge_strategy strategy) noexcept;
/// Throws error(invalid_argument) listing the accepted names.
merge_strategy parse_merge_strategy(std::string_view name);

/// What loss@GRAD of a device is set to.
enum class gradient_scale : std::uint8_t {
  /// n_i/n: the shard's share of the batch's samples. With
  /// merge_strategy::none, where each device trains on its shard alone, 1.
  coeff,
  one,    ///< 1
  custom, ///< nothing: the user feeds loss@GRAD
};

gradient_scale parse_gradient_scale(std::string_view name);

struct build_options {
  std::vector<device_id> devices{device_id{}};
  merge_strategy strategy = merge_strategy::all_reduce;
  gradient_scale scale = gradient_scale::coeff;
  /// Name of the loss; empty: found by `find_loss` (a program without
  /// backward ops needs none).
  std::string loss;
  /// Variables that a fetch handle per device hands to the caller.
  std::vector<std::string> fetches;
  /// Dense gradients of one dtype that follow each other in the order of
  /// collectives are merged by one all_reduce up to this many bytes in sum;
  /// 0: one each.
  std::size_t fuse_all_reduce_bytes = 256 * 1024;
  /// The devices share their memory (kernels/memory/shared_memory.hpp): a persistable
  /// variable that no op writes, or that ops of one device alone write, has one
  /// storage for all, that of the first device, and is not broadcast.
  bool share_parameters = false;
  /// The devices share their memory: one of them makes a merged gradient, at
  /// once for all, where that moves less than merging what each makes (see
  /// gathered_product.hpp).
  bool gather_products = false;
  /// The devices share their memory: a gradient of which one device's update is
  /// the only reader is merged or gathered by that (see merging_update.hpp).
  bool merge_in_updates = false;
  /// Samples of a step over all devices, if known: not results, but what pays
  /// depends on it. 0: unknown.
  std::int64_t batch = 0;
  /// Batch norms of several devices that merge their gradients take statistics
  /// over the whole batch (see passes/sync_batch_norm.hpp).
  sync_batch_norm batch_norms = sync_batch_norm::as_written;
  /// Batch norms, sums and relus become one op, and their gradients, where
  /// nobody fetches what is between (see passes/fuse_batch_norm.hpp).
  bool fuse_batch_norms = false;
  /// What batch norms with a relu behind them wrote is computed again for the
  /// backward pass instead of kept (see passes/recompute_activations.hpp).
  bool recompute_activations = false;
  /// Values of which only the shape is read in the end give their memory back
  /// before (see passes/shape_inputs.hpp).
  bool separate_shape_inputs = false;
  /// Gradients that are read once are overwritten (see
  /// passes/write_in_place.hpp).
  bool write_in_place = false;
  /// Filters stay in the layout of convolutions from step to step (see
  /// passes/filters_in_blocks.hpp).
  bool filters_in_blocks = false;
};

/// Builds the graph of `p`, whose descriptions and names it refers to, over the
/// devices: versions per variable and device, loss scale, collectives in one
/// fixed order, write-after-read and write-after-write edges without exception,
/// step distances.
///
/// Rules: Paddle's multi_devices_graph_pass; where Troupe departs from it,
/// docs/ssa_graph.md says so. Throws error(graph_invalid) with the op and
/// variable concerned, error(not_found) for an unknown loss or fetch,
/// error(invalid_argument) for no device or one listed twice.
ssa_graph build_ssa_graph(std::shared_ptr<const program> p,
                          const build_options& options);
/// The same of a copy of `p`.
ssa_graph build_ssa_graph(const program& p, const build_options& options);

} // namespace troupe::graph
