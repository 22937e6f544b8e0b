// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::cpu {

/// One row (sample) at one time step in the forward pass. Arrays have `hidden`
/// elements, or `hidden` per gate.
struct cell_row {
  std::int64_t hidden = 0;
  float* gates = nullptr;           ///< in: contribution of x; out: activated
  const float* recurrent = nullptr; ///< contribution of the hidden state
  const float* h_before = nullptr;
  const float* c_before = nullptr; ///< null without a cell state
  float* h = nullptr;
  /// LSTM: cell state; GRU: recurrent part of the candidate
  float* kept = nullptr;
};

/// The same in the backward pass. On entry, `dh` is the gradient of h; on
/// return, it is the part of the previous hidden state's gradient that does not
/// go through the gates. On entry, `dc` is the gradient of the cell state; on
/// return, that of the previous cell state.
struct cell_row_gradient {
  std::int64_t hidden = 0;
  const float* gates = nullptr;
  const float* h_before = nullptr;
  const float* c_before = nullptr;
  const float* kept = nullptr;
  const float* h = nullptr;
  float* dh = nullptr;
  float* dc = nullptr;
  float* dgates = nullptr; ///< for the contribution of x
  /// for that of the hidden state; may be `dgates`
  float* drecurrent = nullptr;
};

/// A cell of the op `rnn`. Gates are in the order of the weights: LSTM input,
/// forget, cell, output; GRU reset, update, candidate.
struct rnn_cell {
  std::string_view mode;
  std::int64_t gates = 1;
  bool has_cell_state = false;
  bool keeps = false; ///< writes `kept`
  /// The gradients for the contributions of x and of the hidden state differ.
  bool own_recurrent_gradient = false;
  void (*forward)(const cell_row&) = nullptr;
  void (*backward)(const cell_row_gradient&) = nullptr;
};

/// Finds LSTM, GRU, RNN_TANH or RNN_RELU. Throws error(invalid_argument) that
/// lists them. Source: the cells of Paddle's paddle.nn, which are those of
/// cuDNN.
const rnn_cell& find_rnn_cell(std::string_view mode);

} // namespace troupe::cpu
