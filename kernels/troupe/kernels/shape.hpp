// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace troupe {

/// The extents of a tensor, outermost first. They are stored inline (rank at
/// most 8), so copying a tensor allocates nothing. An extent of -1 means
/// "unknown until fed". It occurs only in programs, never in a tensor with
/// memory.
class shape {
public:
  static constexpr std::size_t max_rank = 8; ///< most axes that there can be

  shape() = default; ///< rank 0: a scalar of one element
  /// Throws error(invalid_argument) if there are more than 8 extents.
  shape(std::initializer_list<std::int64_t> dims);
  /// The same.
  explicit shape(std::span<const std::int64_t> dims);

  /// Number of extents; 0 for a scalar.
  std::size_t rank() const noexcept { return rank_; }
  /// Extent of `axis`; negative axes count from the end. Throws
  /// error(out_of_range) if there is no such axis.
  std::int64_t dim(int axis) const;
  std::int64_t operator[](std::size_t axis) const noexcept {
    return dims_[axis];
  }
  std::int64_t& operator[](std::size_t axis) noexcept { return dims_[axis]; }
  /// All extents; valid as long as the shape.
  std::span<const std::int64_t> dims() const noexcept {
    return {dims_.data(), rank_};
  }
  auto begin() const noexcept { return dims_.begin(); }
  auto end() const noexcept { return dims_.begin() + rank_; }

  /// Product of all extents; 1 for a scalar. Throws error(invalid_argument) if
  /// an extent is unknown or the product overflows.
  std::int64_t numel() const;
  /// Product of the extents in [first, last).
  std::int64_t numel(std::size_t first, std::size_t last) const;
  /// True if any extent is -1.
  bool has_unknown() const noexcept;

  friend bool operator==(const shape& a, const shape& b) noexcept;

private:
  std::array<std::int64_t, max_rank> dims_{};
  std::size_t rank_ = 0;
};

/// "[64, 1, 28, 28]".
std::string to_string(const shape& s);

} // namespace troupe
