// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/letter.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/fingerprint.hpp>
#include <troupe/comm/call_text.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

namespace troupe::comm {

namespace {

void add_number(fingerprint& to, std::uint64_t number) noexcept {
  to.add(&number, sizeof number);
}

/// True if `bytes` bytes from `offset` on are in a segment of `size` bytes.
bool is_inside(std::uint64_t offset, std::uint64_t bytes, std::size_t size) {
  return offset <= size && bytes <= size - offset;
}

/// The elements, or the row numbers, can be read in place.
bool is_inside(const letter_value& v, std::size_t size) {
  constexpr auto row_bytes = sizeof(std::int64_t);
  if (!is_inside(v.offset, v.bytes, size) || v.offset % size_of(v.type) != 0)
    return false;
  if (v.holds != letter_value::content::rows)
    return true;
  return v.row_count <= size && v.rows_offset % row_bytes == 0
         && is_inside(v.rows_offset, v.row_count * row_bytes, size);
}

/// False if another process has written any other byte.
bool is_bool(const bool& value) {
  unsigned char byte = 0;
  std::memcpy(&byte, &value, sizeof byte);
  return byte <= 1;
}

bool is_valid(const letter_head& head) {
  return head.kind <= collective_kind::broadcast && is_bool(head.has_values);
}

bool is_valid(const letter_value& v) {
  return v.holds <= letter_value::content::rows && is_bool(v.wanted)
         && v.type <= dtype::boolean && v.axes <= shape::max_rank;
}

} // namespace

std::uint64_t hash_of_layout(const std::string& name) {
  fingerprint print;
  print.add(name);
  return print.value();
}

std::uint64_t hash_of(const collective_call& call) noexcept {
  fingerprint print;
  add_number(print, static_cast<std::uint64_t>(call.kind));
  add_number(print, call.root);
  for (auto& v : call.values) {
    add_number(print, v.name.size()); // "ab", "c" differs from "a", "bc"
    print.add(v.name);
  }
  return print.value();
}

std::size_t letter_bytes(const collective_call& call) noexcept {
  auto bytes = sizeof(letter_head);
  for (auto& v : call.values)
    bytes += sizeof(letter_value) + v.name.size();
  return bytes;
}

void write_letter(const collective_call& call, std::byte* to) noexcept {
  new (to) letter_head{.kind = call.kind,
                       .root = static_cast<std::uint32_t>(call.root),
                       .values = call.values.size()};
  auto* value = to + sizeof(letter_head);
  auto* name = value + call.values.size() * sizeof(letter_value);
  for (auto& v : call.values) {
    auto* made = new (value) letter_value;
    made->wanted = v.out != nullptr;
    made->name_bytes = static_cast<std::uint32_t>(v.name.size());
    std::memcpy(name, v.name.data(), v.name.size());
    value += sizeof(letter_value);
    name += v.name.size();
  }
}

letter_view::letter_view(std::span<std::byte> memory, std::uint64_t offset,
                         std::uint64_t bytes, std::size_t rank)
  : memory_(memory.data()) {
  const auto refuse = [rank] {
    throw error(errc::peer_failure,
                number_of_rank(rank) + " sent a malformed call");
  };
  if (!is_inside(offset, bytes, memory.size()) || offset % alignof(letter_value)
      || bytes < sizeof(letter_head))
    refuse();
  head_ = reinterpret_cast<letter_head*>(memory_ + offset);
  bytes -= sizeof(letter_head);
  if (!is_valid(*head_) || head_->values > bytes / sizeof(letter_value))
    refuse();
  values_ = reinterpret_cast<letter_value*>(head_ + 1);
  bytes -= head_->values * sizeof(letter_value);
  names_ = reinterpret_cast<const char*>(values_ + head_->values);
  name_bytes_ = bytes;
  for (auto& v : values()) {
    if (v.name_bytes > bytes || !is_valid(v)
        || (head_->has_values && !is_inside(v, memory.size())))
      refuse();
    bytes -= v.name_bytes;
  }
}

std::string_view letter_view::name(std::size_t value) const noexcept {
  // The rank may have taken its letter back and reused the memory.
  std::size_t first = 0;
  for (std::size_t i = 0; i < value; ++i)
    first += values_[i].name_bytes;
  first = std::min(first, name_bytes_);
  return std::string_view{names_, name_bytes_}.substr(
    first, values_[value].name_bytes);
}

std::string letter_view::text() const {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < values().size(); ++i)
    names.push_back(name(i));
  return text_of(head_->kind, head_->root, names);
}

} // namespace troupe::comm
