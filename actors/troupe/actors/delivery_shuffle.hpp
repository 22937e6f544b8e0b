// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>

#include <cstdint>
#include <optional>

namespace troupe {

class executor;

/// A readiness message of one step.
struct message_id {
  handle_id from = no_handle; ///< none: the start of the step
  handle_id to = no_handle;
  step_id step = 0; ///< the receiver's
  friend bool operator==(const message_id&, const message_id&) = default;
};

/// Disturbs a run on purpose, for tests. Results must not change.
struct delivery_shuffle {
  /// Draws the order in which messages are sent, which ready op of a stream
  /// runs next, and how long ops are held back. None: all as usual.
  std::optional<std::uint64_t> seed = 0;
  std::uint32_t max_delay_us = 50; ///< longest hold of a ready op
  /// A message that does not arrive: its step stops until `let_go`.
  std::optional<message_id> withheld = {};
};

/// Delivers the message that `delivery_shuffle::withheld` names. Once, after it
/// would have been sent. Any thread.
void let_go(executor& exe);

} // namespace troupe
