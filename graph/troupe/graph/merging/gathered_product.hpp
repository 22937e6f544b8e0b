// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/graph/program.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::graph {

/// The op type that computes the merged gradient of a matrix from the factors
/// of all devices. X and Out@GRAD have a variable per device. Y@GRAD is the sum
/// of their products in device order, in one variable or in several that share
/// memory. A device without samples has no factors and adds nothing.
inline constexpr std::string_view gathered_product_type = "gathered_mul_grad";

/// True if the gradient of `parameter`, completed by op `product`, should be
/// computed at once from the factors of all devices instead of on each device
/// and merged. This holds if a large matrix multiplies each sample, and the
/// factors of `batch` samples (0: a usual number) have fewer elements than the
/// gradient. Devices that share memory then move batch * (in + out) values
/// between them, instead of in * out per device, and no device keeps its own
/// gradient. Results differ only by rounding: libraries can sum parts of a
/// product in another order than the whole.
///
/// Source: sufficient factors in Xie, Kim, Zhou, Ho, Kumar, Yu, Xing, "Lighter-
/// communication distributed machine learning via sufficient factor
/// broadcasting", UAI 2016; the choice by extents in Zhang et al., "Poseidon",
/// USENIX ATC 2017, section 3.2.
bool is_worth_gathering(const block& b, const op_desc& product,
                        const std::string& parameter,
                        const std::string& gradient, std::int64_t batch);

/// Makes the op that replaces `product`, for which `is_worth_gathering` is
/// true. It computes the merged gradient of `num_devices` devices for
/// `receivers` of them. It has role Optimize because, like an update, it
/// concerns all samples and must also run on a device without samples.
op_desc gathered_product(const op_desc& product, std::size_t num_devices,
                         std::size_t receivers);

/// The rest of `product` that each device still computes: the gradient of X.
/// Empty if `product` does not compute it.
std::optional<op_desc> without_gathered(const op_desc& product);

} // namespace troupe::graph
