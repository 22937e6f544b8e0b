// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/vector_ops.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <vector>

namespace troupe::cpu {

namespace {

// W [height, width] and Ids of any shape: Out[..., :] = W[id, :], and zero for
// padding_idx.
class lookup_base : public kernel {
public:
  explicit lookup_base(const attribute_map& attributes)
    : padding_(attributes.get_int("padding_idx", -1)),
      sparse_(attributes.get_bool("is_sparse", false)) {}

protected:
  bool is_padding(std::int64_t id) const noexcept {
    return padding_ != -1 && id == padding_;
  }

  index_values checked_ids(const tensor& ids, const shape& table) const {
    const index_values values(ids, "Ids");
    require_rank("W", table, 2);
    for (std::int64_t i = 0; i < ids.numel(); ++i)
      if (const std::int64_t id = values[i];
          !is_padding(id) && (id < 0 || id >= table[0]))
        throw error(errc::out_of_range, "id " + std::to_string(id)
                                          + " in a table of "
                                          + std::to_string(table[0]) + " rows");
    return values;
  }

  static shape output_shape(const shape& ids, const shape& table) {
    std::vector<std::int64_t> dims(ids.begin(), ids.end());
    dims.push_back(table[1]);
    return shape(dims);
  }

  bool sparse() const noexcept { return sparse_; }

private:
  std::int64_t padding_;
  bool sparse_;
};

class lookup_kernel final : public lookup_base {
public:
  using lookup_base::lookup_base;
  void run(kernel_context& ctx) override {
    const tensor w = float_input(ctx, "W");
    const tensor ids = ctx.input("Ids");
    const index_values id = checked_ids(ids, w.dims());
    const std::int64_t width = w.dims()[1];
    tensor out = float_output(ctx, "Out", output_shape(ids.dims(), w.dims()));
    for (std::int64_t i = 0; i < ids.numel(); ++i) {
      float* row = out.data<float>() + i * width;
      if (is_padding(id[i]))
        fill(row, width, 0.0f);
      else
        copy(row, w.data<float>() + id[i] * width, width);
    }
  }
};

class lookup_grad_kernel final : public lookup_base {
public:
  using lookup_base::lookup_base;
  void run(kernel_context& ctx) override {
    const shape table = ctx.input("W").dims();
    const tensor ids = ctx.input("Ids");
    const tensor dout = float_input(ctx, "Out@GRAD");
    const index_values id = checked_ids(ids, table);
    require_shape("Out@GRAD", dout.dims(), output_shape(ids.dims(), table));
    if (sparse())
      row_gradient(ctx, table, id, ids.numel(), dout);
    else
      dense_gradient(ctx, table, id, ids.numel(), dout);
  }

private:
  void dense_gradient(kernel_context& ctx, const shape& table,
                      const index_values& id, std::int64_t count,
                      const tensor& dout) const {
    const std::int64_t width = table[1];
    tensor dw = float_output(ctx, "W@GRAD", table);
    fill(dw.data<float>(), dw.numel(), 0.0f);
    for (std::int64_t i = 0; i < count; ++i)
      if (!is_padding(id[i]))
        accumulate(dw.data<float>() + id[i] * width,
                   dout.data<float>() + i * width, 1.0f, width);
  }

  // One row per id, in order. The values are Out@GRAD's memory, unless the
  // padding's rows must be cleared.
  void row_gradient(kernel_context& ctx, const shape& table,
                    const index_values& id, std::int64_t count,
                    const tensor& dout) const {
    selected_rows rows;
    rows.height = table[0];
    rows.rows.resize(static_cast<std::size_t>(count));
    bool has_padding = false;
    for (std::int64_t i = 0; i < count; ++i) {
      rows.rows[static_cast<std::size_t>(i)] = id[i];
      has_padding = has_padding || is_padding(id[i]);
    }
    const shape dims{count, table[1]};
    rows.values = has_padding ? without_padding(ctx, id, dims, dout)
                              : dout.reshaped(dims).share();
    ctx.output_variable("W@GRAD").set(std::move(rows));
  }

  tensor without_padding(kernel_context& ctx, const index_values& id,
                         const shape& dims, const tensor& dout) const {
    tensor values = clone(dout, ctx.on().memory()).reshaped(dims);
    for (std::int64_t i = 0; i < dims[0]; ++i)
      if (is_padding(id[i]))
        fill(values.data<float>() + i * dims[1], dims[1], 0.0f);
    return values;
  }
};

} // namespace

std::unique_ptr<kernel> make_lookup(const attribute_map& attributes) {
  return std::make_unique<lookup_kernel>(attributes);
}

std::unique_ptr<kernel> make_lookup_grad(const attribute_map& attributes) {
  return std::make_unique<lookup_grad_kernel>(attributes);
}

} // namespace troupe::cpu
