// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/ref/array.hpp>
#include <troupe/kernels/ref/ops.hpp>

namespace troupe::ref {

namespace {

/// W [V, D] and Ids of any shape: Out[..., :] = W[id, :], 0 for padding_idx.
struct lookup {
  shape table, ids_dims;
  std::vector<std::int64_t> ids;
  std::int64_t padding;

  explicit lookup(const kernel_context& ctx)
    : table(ctx.input("W").dims()), ids_dims(ctx.input("Ids").dims()),
      ids(input_indices(ctx, "Ids")),
      padding(ctx.attributes().get_int("padding_idx", -1)) {
    require(table.rank() == 2, errc::shape_mismatch,
            "W must be a matrix, not " + to_string(table));
    for (auto id : ids)
      require(is_padding(id) || (id >= 0 && id < table[0]), errc::out_of_range,
              "id " + std::to_string(id) + " in a table of "
                + std::to_string(table[0]) + " rows");
  }

  bool is_padding(std::int64_t id) const {
    return padding != -1 && id == padding;
  }

  shape out_dims() const {
    std::vector<std::int64_t> dims(ids_dims.begin(), ids_dims.end());
    dims.push_back(table[1]);
    return shape(dims);
  }

  /// Calls `f(offset in W, offset in Out)` for each element looked up.
  template <class Function>
  void for_each(Function f) const {
    const auto width = table[1];
    for (std::size_t n = 0; n < ids.size(); ++n)
      for (std::int64_t j = 0; j < width && !is_padding(ids[n]); ++j)
        f(ids[n] * width + j, static_cast<std::int64_t>(n) * width + j);
  }
};

} // namespace

void lookup_table_v2(kernel_context& ctx) {
  const lookup l(ctx);
  auto w = input(ctx, "W");
  array out(l.out_dims());
  l.for_each([&](auto i, auto o) { out[o] = w[i]; });
  output(ctx, "Out", out, input_type(ctx, "W"));
}

void lookup_table_v2_grad(kernel_context& ctx) {
  const lookup l(ctx);
  auto d = input(ctx, "Out@GRAD");
  require_same("Out@GRAD", d.dims, l.out_dims());
  const auto type = input_type(ctx, "W");
  if (ctx.attributes().get_bool("is_sparse", false)) {
    // One row per id, in their order; as in Paddle, also for padding_idx.
    const auto count = static_cast<std::int64_t>(l.ids.size());
    array values(shape{count, l.table[1]});
    values.values = d.values;
    return output_rows(ctx, "W@GRAD", l.ids, l.table[0], values, type);
  }
  array dw(l.table);
  l.for_each([&](auto i, auto o) { dw[i] += d[o]; });
  output(ctx, "W@GRAD", dw, type);
}

} // namespace troupe::ref
