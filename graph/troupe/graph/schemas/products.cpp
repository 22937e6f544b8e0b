// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/schemas/families.hpp>

namespace troupe::graph::schemas {

namespace {

std::size_t column_start(const shape_inference& s, std::string_view attribute,
                         std::size_t rank) {
  const auto count = s.attributes().get_int(attribute, 1);
  s.check_attribute(count > 0 && count < static_cast<std::int64_t>(rank),
                    attribute,
                    "in [1, " + std::to_string(rank) + ") for a tensor of rank "
                      + std::to_string(rank));
  return static_cast<std::size_t>(count);
}

/// X and Y are treated as matrices: the first x_num_col_dims (y_num_col_dims)
/// extents form the rows.
void infer_mul(shape_inference& s) {
  const auto& x = s.dims("X");
  const auto& y = s.dims("Y");
  const auto x_split = column_start(s, "x_num_col_dims", x.rank());
  const auto y_split = column_start(s, "y_num_col_dims", y.rank());
  const auto columns = product(x, x_split, x.rank());
  s.check(fits(columns, product(y, 0, y_split)), "Y",
          "a matrix of " + std::to_string(columns) + " rows to multiply X "
            + to_string(x) + " with");
  std::vector<std::int64_t> out{x.begin(), x.begin() + x_split};
  out.insert(out.end(), y.begin() + y_split, y.end());
  s.output("Out", to_shape(out), s.type("X"));
}

/// The last two extents of an operand, after transposing it if wanted.
struct matrix {
  std::int64_t rows, columns;
};

matrix matrix_of(const shape& dims, bool transposed) {
  const auto rank = dims.rank();
  matrix m{dims[rank - 2], dims[rank - 1]};
  return transposed ? matrix{m.columns, m.rows} : m;
}

/// Removes the extent of 1 at `axis` that was added to a vector.
shape squeezed(const shape& dims, std::size_t axis) {
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < dims.rank(); ++i)
    if (i != axis)
      kept.push_back(dims[i]);
  return to_shape(kept);
}

/// Batched product over the last two axes; the other axes broadcast. A vector X
/// is a row, and a vector Y is a column. matmul (not matmul_v2) can also
/// transpose vectors.
void infer_product(shape_inference& s, bool flip_x, bool flip_y,
                   bool flips_vectors) {
  s.check(s.dims("X").rank() > 0, "X", "of rank 1 at least");
  s.check(s.dims("Y").rank() > 0, "Y", "of rank 1 at least");
  bool row = s.dims("X").rank() == 1;
  bool column = s.dims("Y").rank() == 1;
  const shape x = row ? shape{1, s.dims("X")[0]} : s.dims("X");
  const shape y = column ? shape{s.dims("Y")[0], 1} : s.dims("Y");
  const auto a = matrix_of(x, flip_x && (flips_vectors || !row));
  const auto b = matrix_of(y, flip_y && (flips_vectors || !column));
  row = row && !(flips_vectors && flip_x);
  column = column && !(flips_vectors && flip_y);
  s.check(fits(a.columns, b.rows), "Y",
          "a matrix of " + std::to_string(a.columns) + " rows to multiply X "
            + to_string(x) + " with");
  auto out = x.rank() < y.rank() ? y : x;
  const auto& low = x.rank() < y.rank() ? x : y;
  const auto offset = out.rank() - low.rank();
  for (std::size_t i = 0; i + 2 < low.rank(); ++i) {
    auto& extent = out[i + offset];
    s.check(fits(extent, low[i]) || extent == 1 || low[i] == 1, "Y",
            "a batch of matrices that broadcasts with X " + to_string(x));
    extent = broadcast(extent, low[i]);
  }
  out[out.rank() - 2] = a.rows;
  out[out.rank() - 1] = b.columns;
  if (column)
    out = squeezed(out, out.rank() - 1);
  if (row)
    out = squeezed(out, out.rank() - (column ? 1 : 2));
  s.output("Out", out, s.type("X"));
}

void infer_matmul_v2(shape_inference& s) {
  infer_product(s, s.attributes().get_bool("trans_x", false),
                s.attributes().get_bool("trans_y", false), false);
}

void infer_matmul(shape_inference& s) {
  infer_product(s, s.attributes().get_bool("transpose_X", false),
                s.attributes().get_bool("transpose_Y", false), true);
}

void infer_bmm(shape_inference& s) {
  s.check(s.dims("X").rank() == 3, "X", "of rank 3");
  s.check(s.dims("Y").rank() == 3, "Y", "of rank 3");
  infer_product(s, false, false, false);
}

void infer_dot(shape_inference& s) {
  const auto& x = s.dims("X");
  s.check(x.rank() > 0, "X", "of rank 1 at least");
  s.check(fits(x, s.dims("Y")), "Y", "of the shape of X " + to_string(x));
  s.output("Out", squeezed(x, x.rank() - 1), s.type("X"));
}

op_schema product_of(std::string_view type, void (*infer)(shape_inference&)) {
  return {.type = type,
          .inputs = {{"X"}, {"Y"}},
          .outputs = {{"Out"}},
          .infer = infer,
          .gradient = {
            .groups = {{"X"}, {"Y"}}, .reads = {"X", "Y"}, .outputs = {"Out"}}};
}

/// W is [rows, width], Ids has any shape, and Out is [Ids..., width].
/// lookup_table (not _v2) drops the last axis of Ids [..., 1].
void infer_lookup(shape_inference& s, bool drops_last) {
  const auto& w = s.dims("W");
  const auto& ids = s.dims("Ids");
  s.check(w.rank() == 2, "W", "of rank 2, [rows, width]");
  s.check_index_type("Ids");
  s.check(ids.rank() < shape::max_rank, "Ids",
          "of rank " + std::to_string(shape::max_rank - 1) + " at most");
  std::vector<std::int64_t> out{ids.begin(), ids.end()};
  if (drops_last) {
    s.check(!out.empty() && fits(out.back(), 1), "Ids", "[..., 1]");
    out.pop_back();
  }
  out.push_back(w[1]);
  s.output("Out", to_shape(out), s.type("W"));
}

op_schema lookup(std::string_view type, void (*infer)(shape_inference&)) {
  return {
    .type = type,
    .inputs = {{"W"}, {"Ids"}},
    .outputs = {{"Out"}},
    .infer = infer,
    .gradient = {.groups = {{"W"}}, .reads = {"W", "Ids"}, .outputs = {"Out"}}};
}

} // namespace

void add_products(op_schema_table& table) {
  add(
    table,
    {product_of("mul", infer_mul), product_of("matmul_v2", infer_matmul_v2),
     product_of("matmul", infer_matmul), product_of("bmm", infer_bmm),
     product_of("dot", infer_dot),
     lookup("lookup_table", [](shape_inference& s) { infer_lookup(s, true); }),
     lookup("lookup_table_v2",
            [](shape_inference& s) { infer_lookup(s, false); })});
}

} // namespace troupe::graph::schemas
