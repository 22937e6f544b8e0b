// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/rnn/rnn_cells.hpp>

#include <troupe/kernels/cpu/simd/simd.hpp>
#include <troupe/kernels/cpu/simd/vector_math.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <array>
#include <string>

namespace troupe::cpu {

namespace {

TROUPE_SIMD void tanh_forward(const cell_row& r) {
#pragma omp simd
  for (std::int64_t j = 0; j < r.hidden; ++j)
    r.h[j] = fast_tanh(r.gates[j] + r.recurrent[j]);
}

TROUPE_SIMD void tanh_backward(const cell_row_gradient& r) {
#pragma omp simd
  for (std::int64_t j = 0; j < r.hidden; ++j) {
    r.dgates[j] = r.dh[j] * (1.0f - r.h[j] * r.h[j]);
    r.dh[j] = 0.0f;
  }
}

TROUPE_SIMD void relu_forward(const cell_row& r) {
#pragma omp simd
  for (std::int64_t j = 0; j < r.hidden; ++j) {
    const float z = r.gates[j] + r.recurrent[j];
    r.h[j] = z < 0.0f ? 0.0f : z;
  }
}

TROUPE_SIMD void relu_backward(const cell_row_gradient& r) {
#pragma omp simd
  for (std::int64_t j = 0; j < r.hidden; ++j) {
    r.dgates[j] = r.h[j] > 0.0f ? r.dh[j] : 0.0f;
    r.dh[j] = 0.0f;
  }
}

TROUPE_SIMD void lstm_forward(const cell_row& r) {
  const std::int64_t n = r.hidden;
  float* gates = r.gates;
  const float* in = r.recurrent;
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const float i = fast_sigmoid(gates[j] + in[j]);
    const float f = fast_sigmoid(gates[n + j] + in[n + j]);
    const float g = fast_tanh(gates[2 * n + j] + in[2 * n + j]);
    const float o = fast_sigmoid(gates[3 * n + j] + in[3 * n + j]);
    const float c = f * r.c_before[j] + i * g;
    gates[j] = i;
    gates[n + j] = f;
    gates[2 * n + j] = g;
    gates[3 * n + j] = o;
    r.kept[j] = c;
    r.h[j] = o * fast_tanh(c);
  }
}

TROUPE_SIMD void lstm_backward(const cell_row_gradient& r) {
  const std::int64_t n = r.hidden;
  const float* gates = r.gates;
  float* dgates = r.dgates;
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const float i = gates[j];
    const float f = gates[n + j];
    const float g = gates[2 * n + j];
    const float o = gates[3 * n + j];
    const float active = fast_tanh(r.kept[j]);
    const float dc = r.dc[j] + r.dh[j] * o * (1.0f - active * active);
    dgates[j] = dc * g * i * (1.0f - i);
    dgates[n + j] = dc * r.c_before[j] * f * (1.0f - f);
    dgates[2 * n + j] = dc * i * (1.0f - g * g);
    dgates[3 * n + j] = r.dh[j] * active * o * (1.0f - o);
    r.dc[j] = dc * f;
    r.dh[j] = 0.0f;
  }
}

TROUPE_SIMD void gru_forward(const cell_row& r) {
  const std::int64_t n = r.hidden;
  float* gates = r.gates;
  const float* in = r.recurrent;
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const float reset = fast_sigmoid(gates[j] + in[j]);
    const float update = fast_sigmoid(gates[n + j] + in[n + j]);
    const float own = in[2 * n + j];
    const float candidate = fast_tanh(gates[2 * n + j] + reset * own);
    gates[j] = reset;
    gates[n + j] = update;
    gates[2 * n + j] = candidate;
    r.kept[j] = own;
    r.h[j] = update * r.h_before[j] + (1.0f - update) * candidate;
  }
}

TROUPE_SIMD void gru_backward(const cell_row_gradient& r) {
  const std::int64_t n = r.hidden;
  const float* gates = r.gates;
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const float reset = gates[j];
    const float update = gates[n + j];
    const float candidate = gates[2 * n + j];
    const float dh = r.dh[j];
    const float dcandidate =
      dh * (1.0f - update) * (1.0f - candidate * candidate);
    const float dreset = dcandidate * r.kept[j] * reset * (1.0f - reset);
    const float dupdate =
      dh * (r.h_before[j] - candidate) * update * (1.0f - update);
    r.dgates[j] = dreset;
    r.dgates[n + j] = dupdate;
    r.dgates[2 * n + j] = dcandidate;
    r.drecurrent[j] = dreset;
    r.drecurrent[n + j] = dupdate;
    r.drecurrent[2 * n + j] = dcandidate * reset;
    r.dh[j] = dh * update;
  }
}

constexpr std::array<rnn_cell, 4> cells = {{
  {.mode = "LSTM",
   .gates = 4,
   .has_cell_state = true,
   .keeps = true,
   .forward = lstm_forward,
   .backward = lstm_backward},
  {.mode = "GRU",
   .gates = 3,
   .keeps = true,
   .own_recurrent_gradient = true,
   .forward = gru_forward,
   .backward = gru_backward},
  {.mode = "RNN_TANH", .forward = tanh_forward, .backward = tanh_backward},
  {.mode = "RNN_RELU", .forward = relu_forward, .backward = relu_backward},
}};

} // namespace

const rnn_cell& find_rnn_cell(std::string_view mode) {
  const auto found = std::ranges::find(cells, mode, &rnn_cell::mode);
  if (found == cells.end())
    throw error(errc::invalid_argument, "rnn has no mode " + std::string(mode)
                                          + ": LSTM, GRU, RNN_TANH, RNN_RELU");
  return *found;
}

} // namespace troupe::cpu
