// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cpu/optimizer/merged_rows.hpp>

#include <troupe/base/error.hpp>
#include <troupe/kernels/cpu/arguments.hpp>
#include <troupe/kernels/cpu/simd/vector_ops.hpp>
#include <troupe/kernels/row_order.hpp>

#include <string>

namespace troupe::cpu {

namespace {

std::size_t count_distinct(std::span<const std::int64_t> rows,
                           const std::vector<std::int64_t>& order) {
  std::size_t distinct = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    distinct += i == 0
                || rows[static_cast<std::size_t>(order[i])]
                     != rows[static_cast<std::size_t>(order[i - 1])];
  return distinct;
}

} // namespace

void require_rows(std::string_view slot, const selected_rows& value) {
  const auto count = static_cast<std::int64_t>(value.rows.size());
  const auto& dims = value.values.dims();
  for (const std::int64_t row : value.rows)
    if (row < 0 || row >= value.height)
      throw error(errc::out_of_range,
                  std::string(slot) + " has row " + std::to_string(row)
                    + " of a tensor of " + std::to_string(value.height)
                    + " rows");
  if (count == 0)
    return;
  if (!value.values || dims.rank() == 0 || dims[0] != count)
    throw_shape(slot, dims,
                "expected a value for each of " + std::to_string(count)
                  + " rows");
  if (value.values.type() != dtype::float32)
    throw error(errc::dtype_mismatch,
                "rows of " + std::string(slot) + " are "
                  + std::string(to_string(value.values.type()))
                  + ", expected float32");
}

selected_rows merge_rows(std::string_view slot, const selected_rows& value,
                         arena& memory) {
  require_rows(slot, value);
  selected_rows merged{{}, value.height, {}};
  if (value.rows.empty())
    return merged;
  std::vector<std::int64_t> order;
  order_rows(value.rows, value.height, order);
  shape dims = value.values.dims();
  const std::int64_t width = dims.numel(1, dims.rank());
  dims[0] = static_cast<std::int64_t>(count_distinct(value.rows, order));
  merged.values = tensor::make(memory, dims, dtype::float32);
  const float* from = value.values.data<float>();
  float* to = merged.values.data<float>();
  for (const std::int64_t i : order) {
    const std::int64_t row = value.rows[static_cast<std::size_t>(i)];
    if (!merged.rows.empty() && merged.rows.back() == row) {
      accumulate(to - width, from + i * width, 1.0f, width);
      continue;
    }
    merged.rows.push_back(row);
    copy(to, from + i * width, width);
    to += width;
  }
  return merged;
}

selected_rows multiply_rows(std::string_view slot, const selected_rows& value,
                            float factor, arena& memory) {
  require_rows(slot, value);
  selected_rows product{value.rows, value.height, {}};
  if (value.rows.empty())
    return product;
  product.values = tensor::make(memory, value.values.dims(), dtype::float32);
  scale_add(product.values.data<float>(), value.values.data<float>(), factor,
            0.0f, value.values.numel());
  return product;
}

} // namespace troupe::cpu
