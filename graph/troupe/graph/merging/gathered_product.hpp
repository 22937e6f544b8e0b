// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::graph {

/// The op type that makes the merged gradient of a matrix from the factors of
/// all devices: X and Out@GRAD, a variable per device in each -> Y@GRAD, the
/// sum of their products in the order of devices, in a variable or in several
/// that share the memory. A device without samples has neither factor and adds
/// nothing.
inline constexpr std::string_view gathered_product_type = "gathered_mul_grad";

/// Whether the gradient of `parameter` that op `product` completes is better
/// made at once from all devices' factors than on each device and merged: it is
/// that of a large matrix with which each sample is multiplied, and the factors
/// of `batch` samples (0: of as many as are usual) have fewer elements. Devices
/// that share their memory then move batch * (in + out) values to each other,
/// not in * out per device, and none keeps a gradient of its own. Results are
/// the same but for rounding: libraries may sum up parts of a product in
/// another order than the whole.
///
/// Source: sufficient factors in Xie, Kim, Zhou, Ho, Kumar, Yu, Xing, "Lighter-
/// communication distributed machine learning via sufficient factor
/// broadcasting", UAI 2016; the choice by extents in Zhang et al., "Poseidon",
/// USENIX ATC 2017, section 3.2.
bool is_worth_gathering(const block& b, const op_desc& product,
                        const std::string& parameter,
                        const std::string& gradient, std::int64_t batch);

/// The op that makes the merged gradient in place of `product`, a gradient
/// that `is_worth_gathering`, of `num_devices` devices for `receivers` of them.
/// Of role Optimize: like an update it is for all samples, and runs where the
/// device has none.
op_desc gathered_product(const op_desc& product, std::size_t num_devices,
                         std::size_t receivers);

/// What each device has left to do of `product`: the gradient of X. None if
/// `product` does not make it.
std::optional<op_desc> without_gathered(const op_desc& product);

} // namespace troupe::graph
