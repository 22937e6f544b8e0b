// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>
#include <troupe/graph/variable_uses.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::graph {

/// The op types of updates that merge gradients while reading them. They
/// compute sgd, momentum, adam and adamw with one argument Grad per device.
/// Gradients are added up in device order, bit-identical to a reduce, but the
/// sum is never written to memory. A device without samples has no gradient and
/// adds nothing. Gradients must be tensors, not selected rows.
inline constexpr std::array<std::string_view, 4> merging_update_types{
  "merging_sgd", "merging_momentum", "merging_adam", "merging_adamw"};

/// The op types of updates that compute a gathered gradient
/// (gathered_product.hpp) themselves. They have X and Out@GRAD of each device
/// instead of Grad. The gradient is computed in pieces, and each piece is used
/// while it is in a core's cache. Results are bit-identical to computing the
/// same pieces before the update.
inline constexpr std::array<std::string_view, 4> gathered_update_types{
  "gathered_sgd", "gathered_momentum", "gathered_adam", "gathered_adamw"};

/// True if a type is one of these.
bool is_merging_update(std::string_view op_type);

/// The op of `b` that can merge `gradient`, which op `complete_after` completes
/// on each device. It must be an update with such a variant and the only later
/// op that uses the gradient. Empty if there is no such op or if the gradient
/// can be selected rows.
/// @param uses those of `b`
std::optional<std::size_t> find_merging_update(const block& b,
                                               const use_map& uses,
                                               const std::string& gradient,
                                               std::size_t complete_after);

/// True if the factors of `product` are unchanged at op `update`, a later op of
/// the same block that is to compute the gradient.
/// @param uses those of the block
bool keeps_factors(const use_map& uses, const op_desc& product,
                   std::size_t product_at, std::size_t update_at);

/// Makes the op that replaces `update`, found by `find_merging_update`, and
/// merges the gradients of `num_devices` devices.
op_desc merging_update(const op_desc& update, std::size_t num_devices);

/// Makes the op that replaces both `update` and `product`. It computes the
/// gradient, for which `is_worth_gathering` is true, from the factors of
/// `num_devices` devices.
op_desc gathered_update(const op_desc& update, const op_desc& product,
                        std::size_t num_devices);

} // namespace troupe::graph
