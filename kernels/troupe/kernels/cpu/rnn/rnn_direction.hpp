// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/cpu/rnn/rnn_cells.hpp>

#include <cstdint>
#include <vector>

namespace troupe::cpu {

/// What all layers and directions of a recurrent net have in common.
struct rnn_sizes {
  std::int64_t steps = 0;
  std::int64_t batch = 0;
  std::int64_t hidden = 0;
  std::int64_t directions = 1;
  /// The number of valid steps per sample; empty: all are valid.
  std::vector<std::int64_t> lengths = {};

  std::int64_t rows() const noexcept { return steps * batch; }
  /// Elements of an array with one value per step, sample and hidden unit.
  std::int64_t block() const noexcept { return rows() * hidden; }
  bool counts(std::int64_t step, std::int64_t sample) const {
    return lengths.empty() || step < lengths[static_cast<std::size_t>(sample)];
  }
};

/// Parameters of one direction of one layer, or their gradients (null if not
/// wanted): w_ih [gates * hidden, input], w_hh [gates * hidden, hidden], biases
/// [gates * hidden].
template <class Float>
struct rnn_weights {
  Float* w_ih = nullptr;
  Float* w_hh = nullptr;
  Float* b_ih = nullptr;
  Float* b_hh = nullptr;
};

/// What the forward pass of a direction saves for the gradient, over all steps
/// and samples.
struct rnn_saved {
  float* gates = nullptr; ///< [steps, batch, gates * hidden], activated
  /// [steps, batch, hidden], the previous state if masked
  float* h = nullptr;
  float* kept = nullptr; ///< [steps, batch, hidden], if the cell keeps values

  static std::int64_t blocks(const rnn_cell& cell) noexcept {
    return cell.gates + 1 + (cell.keeps ? 1 : 0);
  }
  /// Pointers into `memory`, which has `blocks` times `sizes.block()` elements.
  static rnn_saved in(float* memory, const rnn_cell& cell,
                      const rnn_sizes& sizes);
};

/// One direction of one layer.
struct rnn_direction {
  const rnn_cell& cell;
  const rnn_sizes& sizes;
  bool reverse = false;
  std::int64_t input = 0; ///< elements per row of x
  rnn_weights<const float> weights;
  const float* x = nullptr;  ///< [steps, batch, input]
  const float* h0 = nullptr; ///< [batch, hidden]
  const float* c0 = nullptr; ///< [batch, hidden], null without a cell state
  rnn_saved saved;

  /// Computes `saved` and writes h to `out`, with rows `stride` apart and zeros
  /// for masked steps. `scratch` has batch * gates * hidden elements.
  void forward(float* out, std::int64_t stride, float* scratch) const;

  /// Adds to `dx`, which may be null, and to the gradients of the weights. On
  /// entry, `dh` and `dc` [batch, hidden] are the gradients of the last states;
  /// on return, those of the first. `scratch` has 2 * rows * gates * hidden
  /// elements.
  void backward(const float* dout, std::int64_t stride, float* dx, float* dh,
                float* dc, const rnn_weights<float>& gradients,
                float* scratch) const;

  /// The states after the last step.
  const float* last_h() const;
  const float* last_c() const;

private:
  std::int64_t at(std::int64_t step) const noexcept {
    return reverse ? sizes.steps - 1 - step : step;
  }
  /// The state before step `step`, in `all` [steps, batch, hidden] or `first`.
  const float* before(const float* all, const float* first,
                      std::int64_t step) const;
  void forward_step(std::int64_t step, float* out, std::int64_t stride,
                    const float* recurrent) const;
  void backward_step(std::int64_t step, const float* dout, std::int64_t stride,
                     float* dh, float* dc, float* dgates,
                     float* drecurrent) const;
  void weight_gradients(const float* dgates, const float* drecurrent,
                        const rnn_weights<float>& gradients) const;
};

} // namespace troupe::cpu
