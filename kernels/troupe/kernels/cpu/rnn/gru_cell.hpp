// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/rnn/gate_activation.hpp>

#include <cstdint>

namespace troupe::cpu {

/// The GRU of Paddle's older ops: update u, reset r and candidate c, where the
/// reset acts on the hidden state before it is multiplied:
///   u, r = gate(x + h W[:, :2d]),  c = act(x + (r h) Wc),
///   h' = h + u (c - h), or in origin mode c + u (h - c).
/// Weights are [d, 2d] and, behind it in the same memory, [d, d].
/// Source: Paddle, gru_unit_op.h.
struct gru_cell {
  const gate_activation& gate;
  const gate_activation& candidate;
  bool origin_mode = false;
  std::int64_t hidden = 0;
  const float* weights = nullptr;

  /// Computes `rows` samples. `gates` [rows, 3d] holds x with the bias and
  /// receives the activated gates. `before` [rows, d] may be null for zeros.
  /// Writes r h to `reset` [rows, d], and `h` [rows, d].
  void forward(std::int64_t rows, float* gates, const float* before,
               float* reset, float* h) const;

  /// `dh` [rows, d] is the gradient of h. Writes `dgates` [rows, 3d] and adds
  /// to `dbefore` [rows, d] and `dweights`, each of which may be null.
  /// `scratch` has rows * d elements.
  void backward(std::int64_t rows, const float* gates, const float* before,
                const float* reset, const float* dh, float* dgates,
                float* dbefore, float* dweights, float* scratch) const;
};

} // namespace troupe::cpu
