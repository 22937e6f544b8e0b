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

/// The op types of updates that merge gradients as they read them: what sgd,
/// momentum, adam and adamw do, with an argument Grad per device. They are
/// added up in the order of devices, as a reduce does, to the same bits; the
/// sum is never written to memory. A device without samples has no gradient and
/// adds nothing. Gradients are tensors, not rows.
inline constexpr std::array<std::string_view, 4> merging_update_types{
  "merging_sgd", "merging_momentum", "merging_adam", "merging_adamw"};

/// The same of updates that make a gathered gradient (gathered_product.hpp)
/// themselves, with X and Out@GRAD of each device instead of Grad: piece by
/// piece, each used while it is in a core's cache. To the bits of the same
/// pieces made before.
inline constexpr std::array<std::string_view, 4> gathered_update_types{
  "gathered_sgd", "gathered_momentum", "gathered_adam", "gathered_adamw"};

/// Whether a type is one of these.
bool is_merging_update(std::string_view op_type);

/// The op of `b` that may merge `gradient`, which op `complete_after` completes
/// on each device: an update of such a type, the only op behind that uses it.
/// None if there is no such op or the gradient may be one of rows.
/// @param uses those of `b`
std::optional<std::size_t> find_merging_update(const block& b,
                                               const use_map& uses,
                                               const std::string& gradient,
                                               std::size_t complete_after);

/// Whether the factors of `product` are still what they were where op `update`
/// of the same block, behind `product`, is to make the gradient.
/// @param uses those of the block
bool keeps_factors(const use_map& uses, const op_desc& product,
                   std::size_t product_at, std::size_t update_at);

/// The op that merges the gradients of `num_devices` devices in place of
/// `update`, which `find_merging_update` has found.
op_desc merging_update(const op_desc& update, std::size_t num_devices);

/// The op that makes the gradient of `product`, which `is_worth_gathering`,
/// from the factors of `num_devices` devices in place of both.
op_desc gathered_update(const op_desc& update, const op_desc& product,
                        std::size_t num_devices);

} // namespace troupe::graph
