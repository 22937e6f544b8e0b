// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/plans/matmul_plan.hpp>

#include <troupe/kernels/arguments.hpp>

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// A vector X is a row, a vector Y is a column.
shape as_matrices(const shape& dims, bool row) {
  if (dims.rank() != 1)
    return dims;
  return row ? shape{1, dims[0]} : shape{dims[0], 1};
}

std::vector<std::int64_t> broadcast_batches(const shape& x, const shape& y) {
  const std::size_t rank = std::max(x.rank(), y.rank()) - 2;
  std::vector<std::int64_t> dims(rank);
  const auto extent = [rank](const shape& s, std::size_t axis) {
    const std::size_t missing = rank - (s.rank() - 2);
    return axis < missing ? std::int64_t{1} : s[axis - missing];
  };
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t a = extent(x, i);
    const std::int64_t b = extent(y, i);
    if (a != b && a != 1 && b != 1)
      throw_shapes("X", x, "Y", y, "batch extents differ");
    dims[i] = a == 1 ? b : a;
  }
  return dims;
}

// For each output batch, the index of the matrix of `operand` that it reads.
std::vector<std::int64_t> batch_index(const shape& operand,
                                      const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> index{0};
  const std::size_t missing = dims.size() - (operand.rank() - 2);
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const std::int64_t extent = axis < missing ? 1 : operand[axis - missing];
    std::vector<std::int64_t> next;
    for (const std::int64_t base : index)
      for (std::int64_t i = 0; i < dims[axis]; ++i)
        next.push_back(base * extent + (extent == 1 ? 0 : i));
    index = std::move(next);
  }
  return index;
}

// A row has no extent m, a column no extent n.
shape squeezed_output(std::vector<std::int64_t> batches, bool row, bool column,
                      std::int64_t m, std::int64_t n) {
  if (!row)
    batches.push_back(m);
  if (!column)
    batches.push_back(n);
  return shape(batches);
}

} // namespace

matmul_options::matmul_options(const attribute_map& attributes)
  : trans_x(
    attributes.get_bool("trans_x", attributes.get_bool("transpose_X", false))),
    trans_y(attributes.get_bool("trans_y",
                                attributes.get_bool("transpose_Y", false))),
    flips_vectors(attributes.has("transpose_X")
                  || attributes.has("transpose_Y")),
    alpha(attributes.get_float("alpha", 1.0f)) {}

matmul_plan make_matmul_plan(const matmul_options& o, const shape& x_dims,
                             const shape& y_dims) {
  if (x_dims.rank() == 0 || y_dims.rank() == 0)
    throw_shapes("X", x_dims, "Y", y_dims, "a scalar cannot be multiplied");
  const shape x = as_matrices(x_dims, o.flips_vectors || !o.trans_x);
  const shape y = as_matrices(y_dims, !o.flips_vectors && o.trans_y);
  matmul_plan p;
  p.x = x_dims;
  p.y = y_dims;
  p.m = x.dim(o.trans_x ? -1 : -2);
  p.k = x.dim(o.trans_x ? -2 : -1);
  p.n = y.dim(o.trans_y ? -2 : -1);
  if (p.k != y.dim(o.trans_y ? -1 : -2))
    throw_shapes("X", x_dims, "Y", y_dims, "inner extents differ");
  const auto batches = broadcast_batches(x, y);
  p.x_batch = batch_index(x, batches);
  p.y_batch = batch_index(y, batches);
  const auto count = static_cast<std::int64_t>(p.x_batch.size());
  p.x_once = x.numel(0, x.rank() - 2) == count;
  p.y_once = y.numel(0, y.rank() - 2) == count;
  const bool row = x_dims.rank() == 1 && !(o.flips_vectors && o.trans_x);
  const bool column = y_dims.rank() == 1 && !(o.flips_vectors && o.trans_y);
  p.out = squeezed_output(batches, row, column, p.m, p.n);
  return p;
}

} // namespace troupe
