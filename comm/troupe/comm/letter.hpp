// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/kernels/dtype.hpp>
#include <troupe/kernels/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe::comm {

// A letter says what a rank gives and wants in a call: a `letter_head`, a
// `letter_value` for each variable, then their names. In shared memory it lies
// in the rank's segment, and so do the values. An engine sends it, with the
// values if they are small. All ranks run the same program on machines of the
// same kind, so these are plain structures.

/// Ranks of a group between processes are numbered below this.
inline constexpr std::size_t max_ranks = 56;
/// Each rank has a bit in a mask.
using rank_mask = std::uint64_t;

constexpr rank_mask bit_of(std::size_t rank) noexcept {
  return rank_mask{1} << rank;
}

struct letter_head {
  collective_kind kind = collective_kind::all_reduce;
  /// The values lie where the offsets say. If false, they are sent later.
  bool has_values = true;
  std::uint32_t root = 0;
  std::uint64_t values = 0;
};

/// One variable. Offsets are in the memory of the letter.
struct letter_value {
  enum class content : std::uint8_t { nothing, dense, rows };

  content holds = content::nothing;
  bool wanted = false; ///< the rank wants the result
  troupe::dtype type = troupe::dtype::float32;
  std::uint8_t axes = 0;
  std::uint32_t name_bytes = 0;
  std::int64_t dims[shape::max_rank] = {};
  std::uint64_t layout = 0; ///< hash of the layout's name; 0: plain
  std::uint64_t offset = 0; ///< of the elements
  std::uint64_t bytes = 0;  ///< of the elements
  /// Of selected rows: the height and the row numbers. Rows without values have
  /// no axes.
  std::int64_t height = 0;
  std::uint64_t row_count = 0;
  std::uint64_t rows_offset = 0;

  shape extents() const { return shape{std::span{dims, axes}}; }
};

/// For `letter_value::layout`. Equal layouts have equal names.
std::uint64_t hash_of_layout(const std::string& name);

/// The same for all ranks that want the same: of kind, root and names.
std::uint64_t hash_of(const collective_call& call) noexcept;
/// The bytes of a letter with these values.
std::size_t letter_bytes(const collective_call& call) noexcept;
/// Writes the head and the names, and empty values.
void write_letter(const collective_call& call, std::byte* to) noexcept;

/// A letter in memory that this or another process has written.
class letter_view {
public:
  letter_view() = default;
  /// Takes the letter of `bytes` bytes at `offset`. Throws error(peer_failure)
  /// if it, its names or its values are not in the memory.
  /// @param rank for errors
  letter_view(std::span<std::byte> memory, std::uint64_t offset,
              std::uint64_t bytes, std::size_t rank);

  const letter_head& head() const noexcept { return *head_; }
  void set_has_values(bool has) noexcept { head_->has_values = has; }
  std::span<letter_value> values() const noexcept {
    return {values_, static_cast<std::size_t>(head_->values)};
  }
  std::string_view name(std::size_t value) const noexcept;
  /// "reduce of a, b to rank 1".
  std::string text() const;

  /// The elements of a value, and the row numbers of selected rows.
  std::byte* elements(const letter_value& v) const noexcept {
    return memory_ + v.offset;
  }
  std::span<const std::int64_t> rows(const letter_value& v) const noexcept {
    return {reinterpret_cast<const std::int64_t*>(memory_ + v.rows_offset),
            static_cast<std::size_t>(v.row_count)};
  }

private:
  std::byte* memory_ = nullptr;
  letter_head* head_ = nullptr;
  letter_value* values_ = nullptr;
  const char* names_ = nullptr;
  std::size_t name_bytes_ = 0;
};

} // namespace troupe::comm
