// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>

#include <cstdint>
#include <optional>

namespace troupe {

class executor;

/// A readiness message of one step.
struct message_id {
  handle_id from = no_handle; ///< `no_handle`: the start of the step
  handle_id to = no_handle;
  step_id step = 0; ///< the receiver's step
  friend bool operator==(const message_id&, const message_id&) = default;
};

/// Perturbs the schedule of a run, for tests. Results must not change.
struct delivery_shuffle {
  /// Seed for the order in which messages are sent (those of an op, a variable,
  /// a step's start and a completion), the choice among a stream's ready ops,
  /// and the delay of each op. Empty: no perturbation.
  std::optional<std::uint64_t> seed = 0;
  std::uint32_t max_delay_us = 50; ///< longest delay of a ready op
  /// A message to withhold. Its step stops until `let_go` is called.
  std::optional<message_id> withheld = {};
};

/// Delivers the message that `delivery_shuffle::withheld` names. Call it once,
/// after the message would normally have been sent. Any thread.
void let_go(executor& exe);

} // namespace troupe
