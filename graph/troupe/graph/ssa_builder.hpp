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
  all_reduce, ///< every device gets all merged gradients and runs all updates
  reduce, ///< each parameter has a home device that updates and broadcasts it
  /// device 0 is the home device of all parameters (PyTorch's DataParallel)
  replicate,
  none, ///< no merging: each device trains on its own shard
};

/// The name of the value, such as "all_reduce".
std::string_view to_string(merge_strategy strategy) noexcept;
/// Throws error(invalid_argument) listing the accepted names.
merge_strategy parse_merge_strategy(std::string_view name);

/// The value of "loss@GRAD" on a device.
enum class gradient_scale : std::uint8_t {
  /// n_i/n: samples of the device's shard divided by samples of the batch. With
  /// merge_strategy::none it is 1, because each device trains on its own shard.
  coeff,
  one,    ///< 1
  custom, ///< not set: the user feeds "loss@GRAD"
};

/// "coeff", "one" or "custom". Throws error(invalid_argument) for another name.
gradient_scale parse_gradient_scale(std::string_view name);

/// Options of `build_ssa_graph`.
struct build_options {
  std::vector<device_id> devices{device_id{}};
  merge_strategy strategy = merge_strategy::all_reduce;
  gradient_scale scale = gradient_scale::coeff;
  /// Name of the loss; empty: found by `find_loss`. A program without backward
  /// ops needs no loss.
  std::string loss;
  /// Variables to fetch. Each gets one fetch handle per device.
  std::vector<std::string> fetches;
  /// Each device knows only its own shard of a batch, because others feed the
  /// rest. The graph then gets two more collectives (docs/ssa_graph.md):
  /// count_samples, before all others, and gather_losses. Ops that need to know
  /// the whole batch wait for count_samples on their device.
  bool spread_batch = false;
  /// Number of steps whose gradients one update of the parameters adds up, at
  /// least 1 (passes/accumulate_gradients.hpp).
  std::uint32_t accumulate = 1;
  /// Which passes rewrite the program. The caller must check that devices share
  /// memory where a pass needs it, and that there are kernels for the ops that
  /// a pass makes.
  lowering_options lowering = lowering_options::none();
};

/// Builds the graph of `p` over the devices. It has versions per variable and
/// device, the loss scale, collectives in one fixed order, all write-after-read
/// and write-after-write edges, and step distances. The graph refers to the
/// descriptions and names in `p`.
///
/// The rules are those of Paddle's multi_devices_graph_pass; docs/ssa_graph.md
/// lists the differences. Throws error(graph_invalid) naming op and variable,
/// error(not_found) for an unknown loss or fetch, and error(invalid_argument)
/// if there is no device, a device is listed twice, or gradients cannot be
/// accumulated.
ssa_graph build_ssa_graph(std::shared_ptr<const program> p,
                          const build_options& options);
/// The same, with a copy of `p`.
ssa_graph build_ssa_graph(const program& p, const build_options& options);

} // namespace troupe::graph
