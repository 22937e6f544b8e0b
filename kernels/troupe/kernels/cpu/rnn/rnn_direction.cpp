// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/rnn/rnn_direction.hpp>

#include <troupe/kernels/cpu/product/gemm.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

namespace troupe::cpu {

namespace {

void fill_rows(float* out, const float* row, std::int64_t rows,
               std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r)
    copy(out + r * width, row, width);
}

/// dw [m, n] += a [k, m]^T b [k, n]
void add_product(float* dw, const float* a, std::int64_t m, const float* b,
                 std::int64_t n, std::int64_t k) {
  if (dw && k > 0)
    gemm(m, n, k, {a, m, true}, {b, n}, 1.0f, dw, n);
}

void add_column_sums(float* db, const float* x, std::int64_t rows,
                     std::int64_t width) {
  if (!db)
    return;
  for (std::int64_t r = 0; r < rows; ++r)
    accumulate(db, x + r * width, 1.0f, width);
}

} // namespace

rnn_saved rnn_saved::in(float* memory, const rnn_cell& cell,
                        const rnn_sizes& sizes) {
  rnn_saved s;
  s.gates = memory;
  s.h = memory + cell.gates * sizes.block();
  if (cell.keeps)
    s.kept = s.h + sizes.block();
  return s;
}

const float* rnn_direction::before(const float* all, const float* first,
                                   std::int64_t step) const {
  return step == 0 ? first : all + at(step - 1) * sizes.batch * sizes.hidden;
}

const float* rnn_direction::last_h() const {
  return before(saved.h, h0, sizes.steps);
}

const float* rnn_direction::last_c() const {
  return before(saved.kept, c0, sizes.steps);
}

void rnn_direction::forward(float* out, std::int64_t stride,
                            float* scratch) const {
  const std::int64_t width = cell.gates * sizes.hidden;
  fill_rows(saved.gates, weights.b_ih, sizes.rows(), width);
  gemm(sizes.rows(), width, input, {x, input}, {weights.w_ih, input, true},
       1.0f, saved.gates, width);
  for (std::int64_t step = 0; step < sizes.steps; ++step) {
    fill_rows(scratch, weights.b_hh, sizes.batch, width);
    gemm(sizes.batch, width, sizes.hidden,
         {before(saved.h, h0, step), sizes.hidden},
         {weights.w_hh, sizes.hidden, true}, 1.0f, scratch, width);
    forward_step(step, out, stride, scratch);
  }
}

void rnn_direction::forward_step(std::int64_t step, float* out,
                                 std::int64_t stride,
                                 const float* recurrent) const {
  const std::int64_t n = sizes.hidden;
  const std::int64_t t = at(step);
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    const std::int64_t row = t * sizes.batch + b;
    cell_row r;
    r.hidden = n;
    r.gates = saved.gates + row * cell.gates * n;
    r.recurrent = recurrent + b * cell.gates * n;
    r.h_before = before(saved.h, h0, step) + b * n;
    r.h = saved.h + row * n;
    r.kept = cell.keeps ? saved.kept + row * n : nullptr;
    if (cell.has_cell_state)
      r.c_before = before(saved.kept, c0, step) + b * n;
    if (sizes.counts(t, b)) {
      cell.forward(r);
      copy(out + row * stride, r.h, n);
      continue;
    }
    copy(r.h, r.h_before, n);
    if (cell.has_cell_state)
      copy(r.kept, r.c_before, n);
    fill(out + row * stride, n, 0.0f);
  }
}

void rnn_direction::backward(const float* dout, std::int64_t stride, float* dx,
                             float* dh, float* dc,
                             const rnn_weights<float>& gradients,
                             float* scratch) const {
  const std::int64_t n = sizes.hidden;
  const std::int64_t width = cell.gates * n;
  float* dgates = scratch;
  float* drecurrent =
    cell.own_recurrent_gradient ? scratch + sizes.rows() * width : dgates;
  for (std::int64_t step = sizes.steps - 1; step >= 0; --step) {
    backward_step(step, dout, stride, dh, dc, dgates, drecurrent);
    gemm(sizes.batch, n, width,
         {drecurrent + at(step) * sizes.batch * width, width},
         {weights.w_hh, n}, 1.0f, dh, n);
  }
  weight_gradients(dgates, drecurrent, gradients);
  if (dx)
    gemm(sizes.rows(), input, width, {dgates, width}, {weights.w_ih, input},
         1.0f, dx, input);
}

void rnn_direction::backward_step(std::int64_t step, const float* dout,
                                  std::int64_t stride, float* dh, float* dc,
                                  float* dgates, float* drecurrent) const {
  const std::int64_t n = sizes.hidden;
  const std::int64_t width = cell.gates * n;
  const std::int64_t t = at(step);
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    const std::int64_t row = t * sizes.batch + b;
    cell_row_gradient r;
    r.hidden = n;
    r.gates = saved.gates + row * width;
    r.h_before = before(saved.h, h0, step) + b * n;
    if (cell.has_cell_state)
      r.c_before = before(saved.kept, c0, step) + b * n;
    r.kept = cell.keeps ? saved.kept + row * n : nullptr;
    r.h = saved.h + row * n;
    r.dh = dh + b * n;
    r.dc = dc ? dc + b * n : nullptr;
    r.dgates = dgates + row * width;
    r.drecurrent = drecurrent + row * width;
    if (!sizes.counts(t, b)) {
      fill(r.dgates, width, 0.0f);
      fill(r.drecurrent, width, 0.0f);
      continue;
    }
    if (dout)
      accumulate(r.dh, dout + row * stride, 1.0f, n);
    cell.backward(r);
  }
}

// The hidden state before a step is that of the neighbouring step, so one
// product covers all steps but the first.
void rnn_direction::weight_gradients(
  const float* dgates, const float* drecurrent,
  const rnn_weights<float>& gradients) const {
  const std::int64_t n = sizes.hidden;
  const std::int64_t width = cell.gates * n;
  const std::int64_t rest = sizes.rows() - sizes.batch;
  const std::int64_t first = reverse ? rest : 0;
  const std::int64_t others = reverse ? 0 : sizes.batch;
  const std::int64_t states = reverse ? sizes.batch : 0;
  add_product(gradients.w_ih, dgates, width, x, input, sizes.rows());
  add_product(gradients.w_hh, drecurrent + first * width, width, h0, n,
              sizes.batch);
  add_product(gradients.w_hh, drecurrent + others * width, width,
              saved.h + states * n, n, rest);
  add_column_sums(gradients.b_ih, dgates, sizes.rows(), width);
  add_column_sums(gradients.b_hh, drecurrent, sizes.rows(), width);
}

} // namespace troupe::cpu
