// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/local/merge_rows.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace troupe::comm::local {

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
  const auto height =
    static_cast<std::uint64_t>(std::max<std::int64_t>(value.height, 0));
  for (auto row : value.rows)
    if (static_cast<std::uint64_t>(row) >= height) // or negative
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

} // namespace

selected_rows merge_rows(rows_view rows_of, arena& memory) {
  auto all = gather(rows_of);
  if (!all.active.empty())
    return concatenated(all, memory);
  selected_rows none;
  none.height = all.height;
  return none;
}

} // namespace troupe::comm::local
