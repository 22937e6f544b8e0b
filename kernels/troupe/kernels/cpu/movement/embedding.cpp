// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/element_types.hpp>
#include <troupe/kernels/cpu/factories.hpp>
#include <troupe/kernels/cpu/optimizer/in_ranges.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace troupe::cpu {

namespace {

// W [height, width] and Ids of any shape: Out[..., :] = W[id, :], or zeros for
// padding_idx. The first version of the op drops the last axis of ids [..., 1].
class lookup_base : public kernel {
public:
  lookup_base(const attribute_map& attributes, bool drops_last)
    : padding_(attributes.get_int("padding_idx", -1)),
      sparse_(attributes.get_bool("is_sparse", false)),
      drops_last_(drops_last) {}

protected:
  bool is_padding(std::int64_t id) const noexcept {
    return padding_ != -1 && id == padding_;
  }

  index_values checked_ids(const kernel_context& ctx, const tensor& ids,
                           const shape& table) const {
    const index_values values(ids, "Ids");
    require_rank("W", table, 2);
    for (std::int64_t i = 0; i < ids.numel(); ++i)
      if (const std::int64_t id = values[i];
          !is_padding(id) && (id < 0 || id >= table[0]))
        throw_index(ctx, "Ids", id, table[0]);
    return values;
  }

  shape output_shape(const shape& ids, const shape& table) const {
    std::vector<std::int64_t> dims(ids.begin(), ids.end());
    if (drops_last_ && (dims.empty() || dims.back() != 1))
      throw_shape("Ids", ids, "expected [..., 1]");
    if (drops_last_)
      dims.pop_back();
    dims.push_back(table[1]);
    return shape(dims);
  }

  bool sparse() const noexcept { return sparse_; }

private:
  std::int64_t padding_;
  bool sparse_;
  bool drops_last_;
};

class lookup_kernel final : public lookup_base {
public:
  using lookup_base::lookup_base;
  void run(kernel_context& ctx) override {
    const tensor w = ctx.input("W");
    const tensor ids = ctx.input("Ids");
    const index_values id = checked_ids(ctx, ids, w.dims());
    const auto row = static_cast<std::size_t>(w.dims()[1]) * size_of(w.type());
    tensor out =
      ctx.output("Out", output_shape(ids.dims(), w.dims()), w.type());
    if (row == 0)
      return;
    const auto row_of = [&](std::int64_t i) {
      return w.raw() + static_cast<std::size_t>(id[i]) * row;
    };
    const auto copy_row = [&](std::int64_t i) {
      std::byte* to = out.raw() + static_cast<std::size_t>(i) * row;
      if (is_padding(id[i]))
        std::memset(to, 0, row);
      else
        std::memcpy(to, row_of(i), row);
    };
    const auto cost = std::max(w.dims()[1], least_row_cost);
    in_rows(ctx, ids.numel(), cost, [&](std::int64_t first, std::int64_t n) {
      const auto last = first + n - 1;
      for (std::int64_t i = first; i <= last; ++i) {
        if (const auto next = std::min(i + rows_ahead, last);
            !is_padding(id[next]))
          __builtin_prefetch(row_of(next));
        copy_row(i);
      }
    });
  }

private:
  // Upcoming rows are prefetched: they may be anywhere in a large table.
  static constexpr std::int64_t rows_ahead = 16;
  // The least cost of a row, in elements: the memory's latency.
  static constexpr std::int64_t least_row_cost = 32;
};

class lookup_grad_kernel final : public lookup_base {
public:
  using lookup_base::lookup_base;
  void run(kernel_context& ctx) override {
    const shape table = ctx.input("W").dims();
    const tensor ids = ctx.input("Ids");
    const tensor dout = ctx.input("Out@GRAD");
    const index_values id = checked_ids(ctx, ids, table);
    require_shape("Out@GRAD", dout.dims(), output_shape(ids.dims(), table));
    if (sparse())
      return row_gradient(ctx, table, id, ids.numel(), dout);
    with_floating(dout.type(), "Out@GRAD", [&](auto zero) {
      dense_gradient<decltype(zero)>(ctx, table, id, ids.numel(), dout);
    });
  }

private:
  template <class T>
  void dense_gradient(kernel_context& ctx, const shape& table,
                      const index_values& id, std::int64_t count,
                      const tensor& dout) const {
    const std::int64_t width = table[1];
    tensor dw = ctx.output("W@GRAD", table, dout.type());
    std::memset(dw.raw(), 0, dw.bytes());
    for (std::int64_t i = 0; i < count; ++i)
      if (!is_padding(id[i]))
        add_into(dw.data<T>() + id[i] * width, dout.data<T>() + i * width,
                 width);
  }

  // One row per id, in their order, in the memory of Out@GRAD. As in Paddle,
  // the row of padding_idx has a gradient here, but none in the dense case.
  static void row_gradient(kernel_context& ctx, const shape& table,
                           const index_values& id, std::int64_t count,
                           const tensor& dout) {
    selected_rows rows;
    rows.height = table[0];
    for (std::int64_t i = 0; i < count; ++i)
      rows.rows.push_back(id[i]);
    rows.values = dout.reshaped({count, table[1]}).share();
    ctx.output_variable("W@GRAD").set(std::move(rows));
  }
};

} // namespace

std::unique_ptr<kernel> make_lookup(const attribute_map& attributes) {
  return std::make_unique<lookup_kernel>(attributes, false);
}

std::unique_ptr<kernel> make_lookup_grad(const attribute_map& attributes) {
  return std::make_unique<lookup_grad_kernel>(attributes, false);
}

std::unique_ptr<kernel> make_lookup_column(const attribute_map& attributes) {
  return std::make_unique<lookup_kernel>(attributes, true);
}

std::unique_ptr<kernel>
make_lookup_column_grad(const attribute_map& attributes) {
  return std::make_unique<lookup_grad_kernel>(attributes, true);
}

} // namespace troupe::cpu
