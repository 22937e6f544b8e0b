// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/sparse.hpp>

#include <troupe/base/error.hpp>
#include <troupe/comm/local/reduce_kernels.hpp>
#include <troupe/kernels/row_order.hpp>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace troupe::comm {

namespace {

using rows_view = std::span<const selected_rows* const>;

[[noreturn]] void fail(errc code, std::size_t rank, const std::string& what) {
  throw error(code, "merge_rows: rank " + std::to_string(rank) + " " + what);
}

shape with_rows(shape dims, std::size_t rows) {
  dims[0] = static_cast<std::int64_t>(rows);
  return dims;
}

void check_row_numbers(const selected_rows& value, std::size_t rank) {
  for (auto row : value.rows)
    if (row < 0 || row >= value.height)
      fail(errc::out_of_range, rank,
           "has row " + std::to_string(row) + " of a tensor of "
             + std::to_string(value.height) + " rows");
}

void check_values(const selected_rows& value, std::size_t rank) {
  auto& dims = value.values.dims();
  if (!value.values && !value.rows.empty())
    fail(errc::shape_mismatch, rank,
         "has " + std::to_string(value.rows.size()) + " rows without values");
  if (!value.values)
    return;
  if (!value.values.is_plain())
    fail(errc::invalid_argument, rank,
         "has values in the layout " + value.values.format()->name()
           + ", expected a plain tensor");
  if (dims.rank() == 0
      || dims[0] != static_cast<std::int64_t>(value.rows.size()))
    fail(errc::shape_mismatch, rank,
         "has " + std::to_string(value.rows.size()) + " rows but values "
           + to_string(dims));
}

void check_like(const selected_rows& value, const selected_rows& first,
                std::size_t rank) {
  auto& dims = value.values.dims();
  if (dims != with_rows(first.values.dims(), value.rows.size()))
    fail(errc::shape_mismatch, rank,
         "has values " + to_string(dims) + ", the first rank "
           + to_string(first.values.dims()));
  if (value.values.type() != first.values.type())
    fail(errc::dtype_mismatch, rank,
         "has " + std::string(to_string(value.values.type()))
           + " values, the first rank "
           + std::string(to_string(first.values.type())));
}

void check_height(const selected_rows& value, std::int64_t height,
                  std::size_t rank) {
  if (value.height != height)
    fail(errc::shape_mismatch, rank,
         "has the height " + std::to_string(value.height) + ", the first rank "
           + std::to_string(height));
}

// The sparse gradients with values, after all have been checked.
struct gathered {
  std::vector<const selected_rows*> active;
  std::int64_t height = 0;
  std::size_t rows = 0;
};

gathered gather(rows_view rows_of) {
  gathered all;
  bool first = true;
  for (std::size_t rank = 0; rank < rows_of.size(); ++rank) {
    auto* value = rows_of[rank];
    if (!value)
      continue;
    if (std::exchange(first, false))
      all.height = value->height;
    check_height(*value, all.height, rank);
    check_row_numbers(*value, rank);
    check_values(*value, rank);
    if (!value->values)
      continue;
    if (!all.active.empty())
      check_like(*value, *all.active.front(), rank);
    all.active.push_back(value);
    all.rows += value->rows.size();
  }
  return all;
}

std::size_t row_bytes(const tensor& values) {
  auto& dims = values.dims();
  return static_cast<std::size_t>(dims.numel(1, dims.rank()))
         * size_of(values.type());
}

selected_rows concatenated(const gathered& all, arena& memory) {
  auto& like = all.active.front()->values;
  selected_rows result;
  result.height = all.height;
  result.values =
    tensor::make(memory, with_rows(like.dims(), all.rows), like.type());
  result.rows.reserve(all.rows);
  auto* to = result.values.raw();
  for (auto* part : all.active) {
    result.rows.insert(result.rows.end(), part->rows.begin(), part->rows.end());
    if (auto bytes = part->values.bytes()) {
      std::memcpy(to, part->values.raw(), bytes);
      to += bytes;
    }
  }
  return result;
}

struct row_value {
  std::int64_t row;
  const std::byte* data;
};

std::vector<row_value> rows_in_order(const gathered& all) {
  std::vector<row_value> result;
  result.reserve(all.rows);
  for (auto* part : all.active) {
    auto* data = part->values.raw();
    auto bytes = row_bytes(part->values);
    for (auto row : part->rows) {
      result.push_back({row, data});
      data += bytes;
    }
  }
  return result;
}

// Values of one row keep device-then-position order.
std::vector<row_value> sorted_rows(const gathered& all) {
  const auto values = rows_in_order(all);
  std::vector<std::int64_t> rows;
  rows.reserve(values.size());
  for (auto& value : values)
    rows.push_back(value.row);
  std::vector<std::int64_t> order;
  order_rows(rows, all.height, order);
  std::vector<row_value> sorted;
  sorted.reserve(values.size());
  for (const auto position : order)
    sorted.push_back(values[static_cast<std::size_t>(position)]);
  return sorted;
}

std::vector<std::int64_t> distinct_rows(const std::vector<row_value>& sorted) {
  std::vector<std::int64_t> rows;
  rows.reserve(sorted.size());
  for (auto& value : sorted)
    if (rows.empty() || rows.back() != value.row)
      rows.push_back(value.row);
  return rows;
}

selected_rows added(const gathered& all, arena& memory) {
  auto& like = all.active.front()->values;
  if (!local::can_merge(like.type()))
    throw error(errc::dtype_mismatch,
                "merge_rows: values are " + std::string(to_string(like.type()))
                  + ", expected float32, float16, bfloat16 or int32");
  auto sorted = sorted_rows(all);
  selected_rows result;
  result.height = all.height;
  result.rows = distinct_rows(sorted);
  result.values = tensor::make(
    memory, with_rows(like.dims(), result.rows.size()), like.type());

  auto bytes = row_bytes(like);
  auto elements = bytes / size_of(like.type());
  std::vector<const std::byte*> sources;
  local::destination to{result.values.raw()};
  for (std::size_t i = 0; i < sorted.size(); to.data += bytes) {
    auto row = sorted[i].row;
    for (sources.clear(); i < sorted.size() && sorted[i].row == row; ++i)
      sources.push_back(sorted[i].data);
    if (sources.size() == 1)
      std::memcpy(to.data, sources.front(), bytes);
    else
      local::merge({.type = like.type()}, sources, {&to, 1}, 0, elements);
  }
  return result;
}

} // namespace

selected_rows merge_rows(rows_view rows_of, arena& memory, row_merge how) {
  auto all = gather(rows_of);
  if (all.active.empty()) {
    selected_rows none;
    none.height = all.height;
    return none;
  }
  return how == row_merge::concatenate ? concatenated(all, memory)
                                       : added(all, memory);
}

} // namespace troupe::comm
