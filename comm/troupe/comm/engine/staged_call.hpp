// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/communicator.hpp>
#include <troupe/comm/engine/message.hpp>
#include <troupe/comm/letter.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/tensor.hpp>

#include <cstddef>
#include <vector>

namespace troupe::comm {

/// What a rank of this process gives in a call.
struct staged_call {
  /// The whole message to the other processes: a `message_head`, the letter
  /// and, if they are small, the values.
  message_bytes message;
  /// By value: a dense value, or the values of selected rows. Handles on the
  /// rank's memory, so that it stays while others read it.
  std::vector<tensor> given;
  std::vector<std::vector<std::int64_t>> rows; ///< by value: row numbers
};

/// Prepares a call of a rank. Values in a layout that does more than permute
/// elements become plain. Small values, of `letter_bytes` bytes together, are
/// copied into the message if all of them are plain.
///
/// Throws error(invalid_argument) for selected rows whose values are not plain,
/// and error(out_of_memory).
/// @param memory for plain copies
staged_call stage(std::size_t rank, const collective_call& call,
                  std::size_t letter_bytes, arena& memory);

/// The letter in a message of kind `call`, which must stay in its memory.
/// Throws error(peer_failure) if it is malformed.
letter_view letter_in(message_bytes& message, std::size_t rank);

} // namespace troupe::comm
