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
  /// Op of the main block after which the gradient is complete: the last op
  /// of role Backward that writes it.
  std::size_t complete_after = 0;
  /// Device that merges, updates and broadcasts; none: an all-reduce, and
  /// every device updates.
  std::optional<std::size_t> home;
  /// With a home: the last op of role Optimize that writes the parameter,
  /// after which it is broadcast. `never` if no op does.
  std::size_t broadcast_after = never;
  /// The device that makes it from the factors of all (gathered_product.hpp):
  /// the home if there is one. None: each has a gradient of its own to merge.
  std::optional<std::size_t> gathered_on = std::nullopt;
  /// Op of the main block that merges or gathers it as it updates the parameter
  /// on the home (merging_update.hpp). None: done before.
  std::optional<std::size_t> merged_by = std::nullopt;

  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
};

/// Which gradients are merged, in the one order of collectives, and where each
/// op of the main block runs.
struct merge_plan {
  std::vector<merged_gradient> gradients;
  /// Per op of the main block: its only device; none: it runs on every device.
  std::vector<std::optional<std::size_t>> only_device;

  /// Whether a gradient is gathered instead of being made by that op on each
  /// device.
  bool gathers_from(std::size_t op) const;
};

/// Plans the merging of `b`'s gradients, those that ops of role Backward name
/// in op_role_var and write. Gradients are ordered by where the program
/// completes them. Of an op that adds gradients up over steps (attribute
/// grad_merge_cond_name) what it adds is merged, in every step. No gradients
/// for one device or merge_strategy::none.
///
/// With a home per parameter (`reduce`, `replicate`), an op of role Optimize
/// runs on the home of the parameter that it concerns: the one whose parameter,
/// gradient or state (what other such ops write) it reads or writes. A
/// parameter falls back to all-reduce and an update on every device when its
/// gradient or state is used elsewhere too: by an op that concerns parameters
/// with different homes (a norm over all gradients), by an op of another role,
/// or by a fetch.
///
/// With `gather_products`, gradients that are worth it are gathered at their
/// home, else on the device that has gathered the fewest elements so far.
///
/// With `merge_in_updates`, a gradient with a home is merged or gathered by its
/// update if that is its only reader.
///
/// Homes under `reduce`: the device with the fewest elements so far, the lowest
/// index on ties (Paddle's reduce mode). Throws error(graph_invalid) on an
/// op_role_var of odd length.
merge_plan plan_merges(const block& b, const build_options& options);

/// Persistable variables of which one copy serves all devices: no op of `b`
/// writes them, or ops of one device alone do, as planned. Names are those in
/// `b`.
std::vector<std::string_view> find_sharable(const block& b,
                                            const merge_plan& plan);

} // namespace troupe::graph
