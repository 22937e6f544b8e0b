// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe::comm {

/// The head of a frame: a message as it travels in a stream of bytes. The
/// message follows, then zeros up to the next multiple of `frame_alignment`, so
/// that messages are aligned where they are received. In the byte order of this
/// machine, as all of a group.
struct alignas(16) frame_head {
  std::uint64_t bytes = 0; ///< of the message
};
inline constexpr std::size_t frame_alignment = alignof(frame_head);

/// How many bytes follow a message of so many.
constexpr std::size_t padding_of(std::size_t bytes) noexcept {
  return (frame_alignment - bytes % frame_alignment) % frame_alignment;
}

/// Finds messages in a stream of bytes. It takes at most twice as much memory
/// as has come, whatever the heads of frames say.
///
/// Thread rule: one thread at a time.
class frame_reader {
public:
  /// Memory for the next bytes of the stream; never empty. Valid until the next
  /// call.
  std::span<std::byte> space();

  /// So many bytes are in that memory. Calls `act(message)` for each message
  /// that is complete now. A message lies in the memory of this object. Throws
  /// error(peer_failure) if a head makes no sense.
  template <class Act>
  void came(std::size_t bytes, Act act) {
    size_ += bytes;
    while (const auto message = next())
      act(*message);
    move_rest();
  }

private:
  /// The next message that is complete.
  std::optional<std::span<const std::byte>> next();
  /// Moves the begin of a message to the begin of the memory.
  void move_rest() noexcept;
  frame_head head() const noexcept;

  std::vector<std::byte> memory_; // as aligned as `new` makes it
  std::size_t first_ = 0;         // of the bytes that no message had yet
  std::size_t size_ = 0;          // up to the last byte that has come
};

} // namespace troupe::comm
