// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/staged_call.hpp>

#include <troupe/comm/local/merge_rows.hpp>

#include <algorithm>
#include <cstring>

namespace troupe::comm {

namespace {

constexpr std::size_t row_bytes = sizeof(std::int64_t);

/// Values and row numbers begin at multiples of this.
constexpr std::size_t value_alignment = 16;

std::size_t aligned(std::size_t bytes) {
  return (bytes + value_alignment - 1) / value_alignment * value_alignment;
}

void describe_value(const tensor& value, letter_value& v) {
  v.type = value.type();
  v.axes = static_cast<std::uint8_t>(value.dims().rank());
  std::ranges::copy(value.dims(), v.dims);
  v.layout = value.is_plain() ? 0 : hash_of_layout(value.format()->name());
  v.bytes = value.bytes();
}

void stage_tensor(const tensor& value, arena& memory, tensor& given,
                  letter_value& v) {
  given = value;
  if (!value.is_plain() && !value.format()->is_permutation())
    given = clone(value, memory);
  v.holds = letter_value::content::dense;
  describe_value(given, v);
}

void stage_selected(std::size_t rank, const selected_rows& value,
                    staged_call& made, std::size_t i, letter_value& v) {
  v.holds = letter_value::content::rows;
  if (const auto view = local::view_of(&value, rank); view && view->values) {
    made.given[i] = value.values;
    describe_value(value.values, v);
  }
  made.rows[i] = value.rows;
  v.height = value.height;
  v.row_count = value.rows.size();
}

/// Where the values would end if they were in the message, and whether they are
/// to be.
struct placement {
  std::size_t end;
  std::size_t bytes = 0; ///< of the values
  bool is_plain = true;
};

placement place_values(std::span<letter_value> values, std::size_t end) {
  placement made{end};
  for (auto& v : values) {
    if (v.holds == letter_value::content::nothing)
      continue;
    made.is_plain &= v.layout == 0;
    v.rows_offset = aligned(made.end);
    v.offset = aligned(v.rows_offset + v.row_count * row_bytes);
    made.end = v.offset + v.bytes;
    made.bytes += v.row_count * row_bytes + v.bytes;
  }
  return made;
}

void copy_values(staged_call& made, std::span<letter_value> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& v = values[i];
    if (v.row_count > 0)
      std::memcpy(made.message.data() + v.rows_offset, made.rows[i].data(),
                  v.row_count * row_bytes);
    if (v.bytes > 0)
      std::memcpy(made.message.data() + v.offset, made.given[i].raw(), v.bytes);
  }
}

bool gives_values(const collective_call& call, std::size_t rank) {
  return call.kind != collective_kind::broadcast || rank == call.root;
}

} // namespace

staged_call stage(std::size_t rank, const collective_call& call,
                  std::size_t letter_bytes, arena& memory) {
  staged_call made;
  const auto begin = sizeof(message_head);
  const auto end = begin + comm::letter_bytes(call);
  made.message.resize(end);
  const message_head head{message_kind::call, static_cast<std::uint32_t>(rank),
                          0, hash_of(call)};
  std::memcpy(made.message.data(), &head, sizeof head);
  write_letter(call, made.message.data() + begin);
  made.given.resize(call.values.size());
  made.rows.resize(call.values.size());
  auto letter = letter_in(made.message, rank);
  for (std::size_t i = 0; gives_values(call, rank) && i < call.values.size();
       ++i) {
    const auto* in = call.values[i].in;
    if (in && in->is_tensor() && in->as_tensor())
      stage_tensor(in->as_tensor(), memory, made.given[i], letter.values()[i]);
    else if (in && in->is_rows())
      stage_selected(rank, in->as_rows(), made, i, letter.values()[i]);
  }
  const auto placed = place_values(letter.values(), end);
  letter.set_has_values(placed.is_plain && placed.bytes <= letter_bytes);
  if (letter.head().has_values && placed.end > end) {
    made.message.resize(placed.end); // moves the letter
    copy_values(made,
                letter_view{made.message, begin, end - begin, rank}.values());
  }
  return made;
}

letter_view letter_in(message_bytes& message, std::size_t rank) {
  return {message, sizeof(message_head), message.size() - sizeof(message_head),
          rank};
}

} // namespace troupe::comm
