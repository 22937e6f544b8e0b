// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/rnn/rnn_direction.hpp>

#include <troupe/kernels/kernel.hpp>

namespace troupe::cpu {

/// Dropout between the layers of a recurrent net. As in Paddle, all layers use
/// one mask [steps, batch, directions * hidden], and elements that are kept are
/// scaled by 1 / (1 - dropout_prob). Random numbers depend on an element's
/// place in the whole batch, so masks do not depend on how samples are spread
/// over devices.
class rnn_dropout {
public:
  /// Throws error(invalid_argument) unless dropout_prob is in [0, 1].
  explicit rnn_dropout(const attribute_map& attributes);

  /// False in tests, if the probability is 0, and if there is only one layer.
  bool drops() const noexcept { return drops_; }
  /// Draws the step's mask, into output DropoutState if the op has it.
  void draw(kernel_context& ctx, const rnn_sizes& sizes);
  /// Reads the mask that the forward op drew from input DropoutState. Throws
  /// error(shape_mismatch | dtype_mismatch).
  void read(const kernel_context& ctx, const rnn_sizes& sizes);
  /// Drops elements of a layer's output, or of its gradient.
  void apply(float* rows) const;
  void release() { mask_ = {}; }

private:
  float probability_;
  bool drops_;
  tensor mask_;
};

} // namespace troupe::cpu
