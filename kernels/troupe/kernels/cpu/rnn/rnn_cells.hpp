// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe::cpu {

/// One row (sample) at one time step going forward; arrays of `hidden`
/// elements, or of one such block per gate.
struct cell_row {
  std::int64_t hidden = 0;
  float* gates = nullptr;           ///< in: the input's part; out: activated
  const float* recurrent = nullptr; ///< the hidden state's part of the gates
  const float* h_before = nullptr;
  const float* c_before = nullptr; ///< cells with a cell state
  float* h = nullptr;
  float* kept = nullptr; ///< LSTM: cell state; GRU: recurrent candidate part
};

/// The same going backward. `dh` enters as the gradient of h and leaves as
/// what reaches the hidden state before other than through the gates; `dc`
/// enters as the gradient of the cell state and leaves as that of the one
/// before.
struct cell_row_gradient {
  std::int64_t hidden = 0;
  const float* gates = nullptr;
  const float* h_before = nullptr;
  const float* c_before = nullptr;
  const float* kept = nullptr;
  const float* h = nullptr;
  float* dh = nullptr;
  float* dc = nullptr;
  float* dgates = nullptr;     ///< of the input's part
  float* drecurrent = nullptr; ///< of the hidden state's part; may be `dgates`
};

/// A cell of the op `rnn`. Gates lie one behind the other in the order of the
/// weights: LSTM input, forget, cell, output; GRU reset, update, candidate.
struct rnn_cell {
  std::string_view mode;
  std::int64_t gates = 1;
  bool has_cell_state = false;
  bool keeps = false; ///< writes `kept`
  /// The gradient of the hidden state's part differs from the input's.
  bool own_recurrent_gradient = false;
  void (*forward)(const cell_row&) = nullptr;
  void (*backward)(const cell_row_gradient&) = nullptr;
};

/// LSTM, GRU, RNN_TANH or RNN_RELU; throws error(invalid_argument) with them.
/// Source: the cells of Paddle's paddle.nn, which are those of cuDNN.
const rnn_cell& find_rnn_cell(std::string_view mode);

} // namespace troupe::cpu
