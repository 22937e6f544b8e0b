// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/frame_reader.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::comm {

namespace {

static_assert(frame_alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
constexpr std::size_t least_bytes = std::size_t{64} << 10;
constexpr std::uint64_t most_in_message = std::uint64_t{1} << 48;

std::size_t whole_frame(const frame_head& head) {
  if (head.bytes > most_in_message)
    throw error(errc::peer_failure, "it sent a malformed message");
  return sizeof head + head.bytes + padding_of(head.bytes);
}

} // namespace

frame_head frame_reader::head() const noexcept {
  frame_head head;
  std::memcpy(&head, memory_.data() + first_, sizeof head);
  return head;
}

std::span<std::byte> frame_reader::space() {
  if (size_ == memory_.size()) { // also for the first time
    const auto wanted =
      size_ < sizeof(frame_head) ? least_bytes : whole_frame(head());
    memory_.resize(
      std::clamp(wanted, size_ + 1, std::max(2 * size_, least_bytes)));
  }
  return std::span{memory_}.subspan(size_);
}

std::optional<std::span<const std::byte>> frame_reader::next() {
  if (size_ - first_ < sizeof(frame_head))
    return std::nullopt;
  const auto said = head();
  const auto whole = whole_frame(said);
  if (size_ - first_ < whole)
    return std::nullopt;
  const std::span message{memory_.data() + first_ + sizeof said, said.bytes};
  first_ += whole;
  return message;
}

void frame_reader::move_rest() noexcept {
  if (first_ == 0)
    return;
  std::memmove(memory_.data(), memory_.data() + first_, size_ - first_);
  size_ -= std::exchange(first_, 0);
}

} // namespace troupe::comm
