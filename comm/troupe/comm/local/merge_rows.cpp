// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/local/merge_rows.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <string>

namespace troupe::comm::local {

namespace {

[[noreturn]] void fail(errc code, std::size_t rank, const std::string& what) {
  throw error(code, "merge_rows: rank " + std::to_string(rank) + " " + what);
}

shape with_rows(shape dims, std::size_t rows) {
  dims[0] = static_cast<std::int64_t>(rows);
  return dims;
}

void check_row_numbers(const rows_view& value, std::size_t rank) {
  const auto height =
    static_cast<std::uint64_t>(std::max<std::int64_t>(value.height, 0));
  for (auto row : value.rows)
    if (static_cast<std::uint64_t>(row) >= height) // or negative
      fail(errc::out_of_range, rank,
           "has row " + std::to_string(row) + " of a tensor of "
             + std::to_string(value.height) + " rows");
}

void check_values(const rows_view& value, std::size_t rank) {
  if (!value.values && !value.rows.empty())
    fail(errc::shape_mismatch, rank,
         "has " + std::to_string(value.rows.size()) + " rows without values");
  if (!value.values)
    return;
  if (value.dims.rank() == 0
      || value.dims[0] != static_cast<std::int64_t>(value.rows.size()))
    fail(errc::shape_mismatch, rank,
         "has " + std::to_string(value.rows.size()) + " rows but values "
           + to_string(value.dims));
}

void check_like(const rows_view& value, const rows_view& first,
                std::size_t rank) {
  if (value.dims != with_rows(first.dims, value.rows.size()))
    fail(errc::shape_mismatch, rank,
         "has values " + to_string(value.dims) + ", the first rank "
           + to_string(first.dims));
  if (value.type != first.type)
    fail(errc::dtype_mismatch, rank,
         "has " + std::string(to_string(value.type))
           + " values, the first rank " + std::string(to_string(first.type)));
}

void check_height(const rows_view& value, std::int64_t height,
                  std::size_t rank) {
  if (value.height != height)
    fail(errc::shape_mismatch, rank,
         "has the height " + std::to_string(value.height) + ", the first rank "
           + std::to_string(height));
}

std::size_t bytes_of(const rows_view& value) {
  return static_cast<std::size_t>(value.dims.numel()) * size_of(value.type);
}

selected_rows concatenated(rows_of_ranks all, const rows_view& like,
                           std::size_t rows, arena& memory) {
  selected_rows result;
  result.height = like.height;
  result.values = tensor::make(memory, with_rows(like.dims, rows), like.type);
  result.rows.reserve(rows);
  auto* to = result.values.raw();
  for (auto& part : all) {
    if (!part || !part->values)
      continue;
    result.rows.insert(result.rows.end(), part->rows.begin(), part->rows.end());
    if (const auto bytes = bytes_of(*part)) {
      std::memcpy(to, part->values, bytes);
      to += bytes;
    }
  }
  return result;
}

} // namespace

std::optional<rows_view> view_of(const selected_rows* rows, std::size_t rank) {
  if (!rows)
    return std::nullopt;
  const auto& values = rows->values;
  if (values && !values.is_plain())
    fail(errc::invalid_argument, rank,
         "has values in the layout " + values.format()->name()
           + ", expected a plain tensor");
  return rows_view{rows->rows, rows->height, values.raw(), values.dims(),
                   values.type()};
}

void check_rows(rows_of_ranks all) {
  const rows_view* first = nullptr;
  const rows_view* first_active = nullptr;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank])
      continue;
    auto& value = *all[rank];
    if (!first)
      first = &value;
    check_height(value, first->height, rank);
    check_row_numbers(value, rank);
    check_values(value, rank);
    if (!value.values)
      continue;
    if (!first_active)
      first_active = &value;
    check_like(value, *first_active, rank);
  }
}

selected_rows merge_rows(rows_of_ranks all, arena& memory) {
  const rows_view* like = nullptr;
  std::size_t rows = 0;
  selected_rows none;
  for (auto& value : std::views::reverse(all)) {
    if (!value)
      continue;
    none.height = value->height;
    if (!value->values)
      continue;
    like = &*value;
    rows += value->rows.size();
  }
  return like ? concatenated(all, *like, rows, memory) : none;
}

} // namespace troupe::comm::local
