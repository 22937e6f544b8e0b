// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/kernel.hpp>

#include <cstdint>

namespace troupe {

/// The attributes of dropout; throws error(invalid_argument).
/// Source: Srivastava et al., "Dropout", 2014. downgrade_in_infer multiplies by
/// 1 - p in tests; upscale_in_train by 1 / (1 - p) in training.
struct dropout_options {
  explicit dropout_options(const attribute_map& attributes);

  /// The factor of elements that are kept.
  float factor() const;

  /// The philox stream of the op: attribute or input Seed, or else derived from
  /// the name of Out.
  static std::uint32_t sequence(const kernel_context& ctx);
  /// Which number of that stream decides about element 0 of X. It depends on
  /// the element's index in the whole batch, so masks do not depend on how
  /// samples are spread over devices.
  static std::uint64_t first_number(const kernel_context& ctx,
                                    const shape& dims);

  float probability; ///< that an element is dropped
  bool is_test;
  bool upscales = false;
};

} // namespace troupe
