// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/comm/letter.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::comm {

/// What a message between the processes of an engine's group is about.
enum class message_kind : std::uint32_t {
  hello = 0x31676e65, ///< "eng1"; the first one, see `hello_message`
  call,               ///< a rank makes a call; its letter follows
  failed,             ///< a rank has failed a call; the error follows
  given_up,      ///< ranks that have not made a call fail it; error follows
  left,          ///< a rank has left; the error follows
  broken,        ///< the process cannot go on; the error follows
  lost,          ///< the process has lost another one; the error follows
  beat,          ///< a sign of life; what the process does follows
  parcel,        ///< a parcel of a rank; its content follows
  bye,           ///< the process is about to close its engine
  answer_to_bye, ///< the last message to such a process
};

/// The begin of each message but `hello`. All processes run the same program on
/// machines of the same kind, so this is a plain structure.
struct message_head {
  message_kind kind;
  std::uint32_t rank = 0; ///< of `lost`: number of the process
  /// Number of the call. Of `left`: of the rank's last call. Of `beat`: how
  /// many steps have ended. Of `parcel`: first word of the label.
  std::uint64_t call = 0;
  /// Of `call`: see `hash_of`. Of `parcel`: second word of the label.
  std::uint64_t hash = 0;
};

/// What processes of the same host do in the memory that they share.
enum class host_use : std::uint32_t { none, parcels, parcels_and_sums };

struct hello_message {
  message_kind kind = message_kind::hello;
  std::uint32_t process = 0;
  std::uint32_t processes = 0;
  host_use hosts = host_use::none;
  rank_mask ranks = 0; ///< of the process
  /// Unless `hosts` is none; equal in processes of the same host.
  std::uint64_t host = 0;
  std::uint64_t letter_bytes = 0;
  std::uint64_t piece_bytes = 0;
};

/// Longest text of a `beat`.
inline constexpr std::size_t most_beat_bytes = 190;

using message_bytes = std::vector<std::byte>;

/// A message with an error behind its head.
message_bytes message_of(const message_head& head, const error& why);
/// A message without anything behind its head.
message_bytes message_of(const message_head& head);
/// A `beat` with the first `most_beat_bytes` of the text.
message_bytes beat_of(std::uint64_t steps, std::string_view doing);

///@{
/// The two parts of a message. Throw error(peer_failure) if it is too short.
message_head head_of(std::span<const std::byte> message);
hello_message hello_of(std::span<const std::byte> message);
error error_of(std::span<const std::byte> message);
///@}
/// The text of a `beat`. Throws error(peer_failure) if it is too long.
std::string_view doing_of(std::span<const std::byte> message);

} // namespace troupe::comm
