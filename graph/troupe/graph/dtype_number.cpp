// SPDX-License-Identifier: Apache-2.0
#include <troupe/graph/dtype_number.hpp>

#include <troupe/base/assert.hpp>
#include <troupe/base/error.hpp>

#include <string>

namespace troupe::graph {

namespace {

struct numbered {
  dtype type;
  std::int32_t number;
};

constexpr numbered numbers[] = {
  {dtype::boolean, 0},   {dtype::int16, 1},   {dtype::int32, 2},
  {dtype::int64, 3},     {dtype::float16, 4}, {dtype::float32, 5},
  {dtype::float64, 6},   {dtype::uint8, 20},  {dtype::int8, 21},
  {dtype::bfloat16, 22},
};

} // namespace

std::int32_t dtype_number(dtype type) noexcept {
  for (const auto& entry : numbers)
    if (entry.type == type)
      return entry.number;
  TROUPE_ASSERT(false);
}

std::optional<dtype> find_dtype(std::int64_t number) noexcept {
  for (const auto& entry : numbers)
    if (entry.number == number)
      return entry.type;
  return std::nullopt;
}

dtype dtype_of_number(std::int64_t number) {
  if (auto type = find_dtype(number))
    return *type;
  throw error{errc::dtype_mismatch,
              "no tensor element type has number " + std::to_string(number)};
}

} // namespace troupe::graph
