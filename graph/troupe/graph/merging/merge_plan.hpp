// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/ssa_builder.hpp>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::graph {

/// How the gradient of one parameter is merged over the devices.
struct merged_gradient {
  std::string parameter;
  std::string gradient;
  /// Op of the main block that completes the gradient: the last op of role
  /// Backward that writes it.
  std::size_t complete_after = 0;
  /// Device that merges, updates and broadcasts. Empty: the gradient is
  /// all-reduced and every device updates.
  std::optional<std::size_t> home;
  /// With a home: the last op of role Optimize that writes the parameter; the
  /// broadcast follows it. `never` if there is no such op.
  std::size_t broadcast_after = never;
  /// The device that computes the gradient from the factors of all devices
  /// (gathered_product.hpp); the home if there is one. Empty: each device has
  /// its own gradient, and these are merged.
  std::optional<std::size_t> gathered_on = std::nullopt;
  /// Op of the main block that merges or gathers the gradient while it updates
  /// the parameter on the home device (merging_update.hpp). Empty: the gradient
  /// is merged before the update.
  std::optional<std::size_t> merged_by = std::nullopt;

  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
};

/// The gradients to merge, in the order of collectives, and the devices on
/// which each op of the main block runs.
struct merge_plan {
  std::vector<merged_gradient> gradients;
  /// Per op of the main block: its only device. Empty: it runs on every device.
  std::vector<std::optional<std::size_t>> only_device;

  /// True if a gradient is gathered instead of being computed by that op on
  /// each device.
  bool gathers_from(std::size_t op) const;
};

/// The gradients of `b`'s parameters: those that ops of role Backward name in
/// op_role_var and write, in the order in which the program completes them.
/// Throws error(graph_invalid) on an op_role_var of odd length.
std::vector<merged_gradient> find_gradients(const block& b);

/// Plans the merging of `b`'s gradients (`find_gradients`). If an op
/// accumulates gradients over steps (attribute grad_merge_cond_name), the
/// gradient of each step is merged before it is added. With one device or
/// merge_strategy::none, nothing is merged.
///
/// With a home per parameter (`reduce`, `replicate`), an op of role Optimize
/// runs on the home of the parameter that it concerns. An op concerns a
/// parameter if it reads or writes the parameter, its gradient, or its state
/// (what other such ops write). A parameter falls back to all-reduce with an
/// update on every device if its gradient or state is also used elsewhere: by
/// an op that concerns parameters with different homes (such as a norm over all
/// gradients), by an op of another role, or by a fetch.
///
/// With `gather_products`, suitable gradients are gathered on their home
/// device. Without a home, they are gathered on the device with the fewest
/// gathered elements so far.
///
/// With `merge_in_updates`, a gradient with a home is merged or gathered by its
/// update if that is its only reader.
///
/// Under `reduce`, the home is the device with the fewest elements so far; on
/// ties, the one with the lowest index (as in Paddle's reduce mode). Throws
/// error(graph_invalid) on an op_role_var of odd length.
merge_plan plan_merges(const block& b, const build_options& options);

/// Persistable variables that devices can share: according to the plan, no op
/// of `b` writes them, or only ops of one device do. The names refer to those
/// in `b`.
std::vector<std::string_view> find_sharable(const block& b,
                                            const merge_plan& plan);

} // namespace troupe::graph
