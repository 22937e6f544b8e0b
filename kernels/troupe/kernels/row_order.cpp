// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/row_order.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace troupe {

namespace {

constexpr int digit_bits = 11;
constexpr std::size_t digits = std::size_t{1} << digit_bits;

using positions = std::vector<std::int64_t>;

// Sets `to` to the positions in `from`, sorted by one digit of their rows.
void order_by_digit(std::span<const std::int64_t> rows, const positions& from,
                    positions& to, int shift) {
  const auto digit_of = [&](std::int64_t position) {
    const auto row = rows[static_cast<std::size_t>(position)];
    return static_cast<std::size_t>(row >> shift) % digits;
  };
  std::array<std::size_t, digits + 1> starts{};
  for (const auto position : from)
    ++starts[digit_of(position) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  for (const auto position : from)
    to[starts[digit_of(position)]++] = position;
}

} // namespace

void order_rows(std::span<const std::int64_t> rows, std::int64_t height,
                positions& order) {
  order.resize(rows.size());
  std::iota(order.begin(), order.end(), 0);
  if (std::is_sorted(rows.begin(), rows.end()))
    return;
  positions other(rows.size());
  for (int shift = 0; (height - 1) >> shift > 0; shift += digit_bits) {
    order_by_digit(rows, order, other, shift);
    order.swap(other);
  }
}

} // namespace troupe
