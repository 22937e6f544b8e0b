// SPDX-License-Identifier: Apache-2.0
// Ops that move whole rows of sequences. Each op is a plan that says which rows
// go where. The forward kernel copies along the plan; the gradient kernel adds
// up in the opposite direction.
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/sequence/sequences.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

/// Rows [from, from + count) of input `source` become rows [to, to + count).
struct row_move {
  std::size_t source = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t count = 0;
};

struct row_plan {
  std::vector<row_move> moves;
  shape dims; ///< dims of the output; its rows are the first `leading` extents
  lod levels; ///< of the output
  std::size_t leading = 1;

  std::int64_t rows() const { return dims.numel(0, leading); }
};

using row_planner = row_plan (*)(const kernel_context&);

std::int64_t at(const std::vector<std::uint64_t>& offsets, std::size_t i) {
  return static_cast<std::int64_t>(offsets[i]);
}

shape with_rows(shape dims, std::int64_t rows) {
  dims[0] = rows;
  return dims;
}

// -- plans --------------------------------------------------------------------

std::size_t reference_level(const kernel_context& ctx, const lod& levels) {
  const auto level = ctx.attributes().get_int("ref_level", -1);
  const auto count = static_cast<std::int64_t>(levels.size());
  if (level < -1 || level >= count)
    throw error(errc::out_of_range, "ref_level " + std::to_string(level)
                                      + " of Y with " + std::to_string(count)
                                      + " levels");
  return static_cast<std::size_t>(level < 0 ? count - 1 : level);
}

// Repeats each sequence of X (each row, without levels) as many times as Y's
// sequence of the same number has rows.
row_plan plan_expand(const kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const tensor y = ctx.input("Y");
  const lod& reference = require_levels(y, "Y");
  const auto& repeats = reference[reference_level(ctx, reference)];
  if (x.levels() && x.levels()->size() > 1)
    throw_shape("X", x.dims(), "has more than one level of sequences");
  const auto n = static_cast<std::int64_t>(repeats.size()) - 1;
  if (x.num_samples() != n)
    throw_shape("X", x.dims(),
                "has " + std::to_string(x.num_samples()) + " sequences, Y has "
                  + std::to_string(n));
  row_plan plan;
  std::vector<std::uint64_t> offsets{0};
  std::int64_t to = 0;
  for (std::size_t i = 0; i + 1 < repeats.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const auto first = x.levels() ? at((*x.levels())[0], i) : index;
    const auto last = x.levels() ? at((*x.levels())[0], i + 1) : index + 1;
    for (auto left = repeats[i + 1] - repeats[i]; left > 0; --left) {
      plan.moves.push_back({0, first, to, last - first});
      to += last - first;
      offsets.push_back(static_cast<std::uint64_t>(to));
    }
  }
  plan.dims = with_rows(x.dims(), to);
  if (x.levels())
    plan.levels = {offsets};
  return plan;
}

// Repeats row i of X as many times as sequence i of Y has rows.
row_plan plan_expand_as(const kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const tensor y = ctx.input("Y");
  const auto& repeats = require_levels(y, "Y").front();
  if (x.dims()[0] != static_cast<std::int64_t>(repeats.size()) - 1)
    throw_shape("X", x.dims(),
                "Y has " + std::to_string(repeats.size() - 1) + " sequences");
  row_plan plan;
  for (std::size_t i = 0; i + 1 < repeats.size(); ++i)
    for (auto to = at(repeats, i); to < at(repeats, i + 1); ++to)
      plan.moves.push_back({0, static_cast<std::int64_t>(i), to, 1});
  plan.dims = with_rows(x.dims(), static_cast<std::int64_t>(plan.moves.size()));
  plan.levels = {repeats};
  return plan;
}

// Sequence i of the output joins sequence i of each X.
row_plan plan_concat(const kernel_context& ctx) {
  row_plan plan;
  std::vector<tensor> x{ctx.input("X")};
  const auto& first = require_levels(x[0], "X").front();
  for (std::size_t k = 0; k < ctx.num_inputs("X"); ++k) {
    if (k > 0)
      x.push_back(ctx.input("X", k));
    require_type("X", x[k].type(), x[0].type());
    if (require_levels(x[k], "X").front().size() != first.size()
        || row_elements(x[k].dims()) != row_elements(x[0].dims()))
      throw_shapes("X", x[0].dims(), "X", x[k].dims(),
                   "not as many sequences, or rows of another shape");
  }
  std::vector<std::uint64_t> offsets{0};
  std::int64_t to = 0;
  for (std::size_t i = 0; i + 1 < (*x[0].levels())[0].size(); ++i) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      const auto& from = (*x[k].levels())[0];
      const auto count = at(from, i + 1) - at(from, i);
      plan.moves.push_back({k, at(from, i), to, count});
      to += count;
    }
    offsets.push_back(static_cast<std::uint64_t>(to));
  }
  plan.dims = with_rows(x[0].dims(), to);
  plan.levels = {offsets};
  return plan;
}

row_plan plan_reverse(const kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const auto& offsets = require_levels(x, "X").back();
  row_plan plan;
  plan.dims = x.dims();
  plan.levels = *x.levels();
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    for (auto row = at(offsets, i); row < at(offsets, i + 1); ++row)
      plan.moves.push_back(
        {0, row, at(offsets, i) + at(offsets, i + 1) - 1 - row, 1});
  return plan;
}

std::int64_t longest(const std::vector<std::uint64_t>& offsets) {
  std::int64_t length = 0;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    length = std::max(length, at(offsets, i + 1) - at(offsets, i));
  return length;
}

// [rows, ...] to [sequences, padded_length, ...].
row_plan plan_pad(const kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const auto& offsets = require_levels(x, "X").front();
  auto length = ctx.attributes().get_int("padded_length", -1);
  if (length < 0)
    length = longest(offsets);
  if (length < longest(offsets))
    throw error(errc::invalid_argument,
                "padded_length " + std::to_string(length)
                  + " is less than the longest sequence, "
                  + std::to_string(longest(offsets)));
  row_plan plan;
  plan.leading = 2;
  std::vector<std::int64_t> dims{static_cast<std::int64_t>(offsets.size()) - 1,
                                 length};
  dims.insert(dims.end(), x.dims().begin() + 1, x.dims().end());
  plan.dims = shape(dims);
  plan.rows(); // throws if there are more than 2^63
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    plan.moves.push_back({0, at(offsets, i),
                          static_cast<std::int64_t>(i) * length,
                          at(offsets, i + 1) - at(offsets, i)});
  return plan;
}

// [sequences, padded_length, ...] to [rows, ...].
row_plan plan_unpad(const tensor& x, std::vector<std::uint64_t> offsets) {
  const auto padded = x.dims()[1];
  row_plan plan;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    plan.moves.push_back({0, static_cast<std::int64_t>(i) * padded,
                          at(offsets, i), at(offsets, i + 1) - at(offsets, i)});
  std::vector<std::int64_t> dims{static_cast<std::int64_t>(offsets.back())};
  dims.insert(dims.end(), x.dims().begin() + 2, x.dims().end());
  if (x.dims().rank() == 2)
    dims.push_back(1);
  plan.dims = shape(dims);
  plan.levels = {std::move(offsets)};
  return plan;
}

void check_length(std::int64_t length, std::int64_t padded) {
  if (length < 0 || length > padded)
    throw error(errc::out_of_range, "length " + std::to_string(length)
                                      + " of a sequence padded to "
                                      + std::to_string(padded));
}

row_plan plan_unpad(const kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const tensor lengths = ctx.input("Length");
  const index_values length(lengths, "Length");
  if (x.dims().rank() < 2 || lengths.numel() != x.dims()[0])
    throw_shapes("X", x.dims(), "Length", lengths.dims(),
                 "expected [sequences, length, ...] and [sequences]");
  std::vector<std::uint64_t> offsets{0};
  for (std::int64_t i = 0; i < lengths.numel(); ++i) {
    check_length(length[i], x.dims()[1]);
    offsets.push_back(offsets.back() + static_cast<std::uint64_t>(length[i]));
  }
  return plan_unpad(x, std::move(offsets));
}

// The gradient op gets the lengths from the sequences of Out@GRAD.
row_plan plan_unpad_gradient(const kernel_context& ctx) {
  const tensor x = ctx.input("X");
  const tensor dout = ctx.input("Out@GRAD");
  const auto& offsets = require_levels(dout, "Out@GRAD").front();
  if (x.dims().rank() < 2
      || x.dims()[0] != static_cast<std::int64_t>(offsets.size()) - 1)
    throw_shape("X", x.dims(), "expected as many rows as sequences");
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    check_length(at(offsets, i + 1) - at(offsets, i), x.dims()[1]);
  return plan_unpad(x, offsets);
}

// -- running a plan -----------------------------------------------------------

/// Read before the output is made, because it may be the variable of an input.
std::vector<tensor> read_sources(const kernel_context& ctx) {
  std::vector<tensor> x;
  for (std::size_t k = 0; k < ctx.num_inputs("X"); ++k)
    x.push_back(ctx.input("X", k));
  return x;
}

void copy_rows(const row_plan& plan, const std::vector<tensor>& sources,
               tensor& out) {
  const auto row =
    static_cast<std::size_t>(plan.dims.numel(plan.leading, plan.dims.rank()))
    * size_of(out.type());
  for (auto& move : plan.moves) {
    if (move.count == 0 || row == 0)
      continue;
    const tensor& x = sources[move.source];
    std::memcpy(out.raw() + static_cast<std::size_t>(move.to) * row,
                x.raw() + static_cast<std::size_t>(move.from) * row,
                static_cast<std::size_t>(move.count) * row);
  }
}

void run_plan(kernel_context& ctx, std::string_view slot, row_plan plan) {
  const auto sources = read_sources(ctx);
  tensor out = ctx.output(slot, plan.dims, sources.at(0).type());
  copy_rows(plan, sources, out);
  if (!plan.levels.empty())
    ctx.output_variable(slot).as_tensor().set_levels(
      make_lod(std::move(plan.levels), plan.dims[0]));
}

// The gradients of those X that the op asks for: sums over the rows' copies.
void run_plan_gradient(kernel_context& ctx, std::string_view slot,
                       const row_plan& plan) {
  const tensor dout = float_input(ctx, slot);
  if (dout.numel() != plan.dims.numel())
    throw_shape(slot, dout.dims(), "expected " + to_string(plan.dims));
  const auto row = plan.dims.numel(plan.leading, plan.dims.rank());
  const auto wanted = ctx.num_outputs("X@GRAD");
  for (std::size_t k = 0; k < wanted; ++k) {
    if (!ctx.has_output("X@GRAD", k))
      continue;
    const tensor x = ctx.input("X", k);
    tensor dx = float_output(ctx, "X@GRAD", x.dims(), k);
    fill(dx.data<float>(), dx.numel(), 0.0f);
    for (auto& move : plan.moves)
      if (move.source == k)
        accumulate(dx.data<float>() + move.from * row,
                   dout.data<float>() + move.to * row, 1.0f, move.count * row);
    ctx.output_variable("X@GRAD", k).as_tensor().set_levels(x.levels());
  }
}

void fill_with(tensor& out, const tensor& value) {
  const auto bytes = value.bytes();
  for (std::size_t at = 0; at + bytes <= out.bytes(); at += bytes)
    std::memcpy(out.raw() + at, value.raw(), bytes);
}

} // namespace

void run_sequence_expand(kernel_context& ctx) {
  run_plan(ctx, "Out", plan_expand(ctx));
}
void run_sequence_expand_grad(kernel_context& ctx) {
  run_plan_gradient(ctx, "Out@GRAD", plan_expand(ctx));
}
void run_sequence_expand_as(kernel_context& ctx) {
  run_plan(ctx, "Out", plan_expand_as(ctx));
}
void run_sequence_expand_as_grad(kernel_context& ctx) {
  run_plan_gradient(ctx, "Out@GRAD", plan_expand_as(ctx));
}
void run_sequence_concat(kernel_context& ctx) {
  run_plan(ctx, "Out", plan_concat(ctx));
}
void run_sequence_concat_grad(kernel_context& ctx) {
  run_plan_gradient(ctx, "Out@GRAD", plan_concat(ctx));
}
void run_sequence_reverse(kernel_context& ctx) {
  run_plan(ctx, "Y", plan_reverse(ctx));
}
void run_sequence_unpad(kernel_context& ctx) {
  run_plan(ctx, "Out", plan_unpad(ctx));
}
void run_sequence_unpad_grad(kernel_context& ctx) {
  run_plan_gradient(ctx, "Out@GRAD", plan_unpad_gradient(ctx));
}

void run_sequence_pad(kernel_context& ctx) {
  const auto plan = plan_pad(ctx);
  const tensor x = ctx.input("X");
  const tensor value = ctx.input("PadValue");
  const auto row = row_elements(x.dims());
  if (value.type() != x.type() || (value.numel() != 1 && value.numel() != row))
    throw_shapes("X", x.dims(), "PadValue", value.dims(),
                 "expected one element or a row, of X's dtype");
  tensor out = ctx.output("Out", plan.dims, x.type());
  fill_with(out, value);
  copy_rows(plan, {x}, out);
  if (!ctx.has_output("Length"))
    return;
  const auto& offsets = x.levels()->front();
  tensor lengths = ctx.output("Length", {plan.dims[0]}, dtype::int64);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    lengths.data<std::int64_t>()[i] = at(offsets, i + 1) - at(offsets, i);
}

void run_sequence_pad_grad(kernel_context& ctx) {
  run_plan_gradient(ctx, "Out@GRAD", plan_pad(ctx));
}

} // namespace troupe::cpu
