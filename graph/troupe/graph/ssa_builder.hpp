// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/lowering_options.hpp>
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

/// What a graph is built for.
struct build_options {
  std::vector<device_id> devices{device_id{}};
  merge_strategy strategy = merge_strategy::all_reduce;
  gradient_scale scale = gradient_scale::coeff;
  /// Name of the loss; empty: found by `find_loss` (a program without
  /// backward ops needs none).
  std::string loss;
  /// Variables that a fetch handle per device hands to the caller.
  std::vector<std::string> fetches;
  /// Which passes rewrite the program. That devices share their memory, and
  /// have kernels for what a pass makes, is the caller's to know.
  lowering_options lowering = lowering_options::none();
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
