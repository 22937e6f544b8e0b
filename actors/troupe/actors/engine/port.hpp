// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/mailbox.hpp>
#include <troupe/base/ids.hpp>

#include <caf/actor_control_block.hpp>

#include <cstdint>

namespace troupe::actors {

/// The sending end of an edge that is no call into a mailbox of this process.
/// Which form an edge has is decided when the graph is wired; who sends along
/// it does not know.
struct port {
  enum class form : std::uint8_t {
    counter, ///< a call into a mailbox of this process: no port is needed
    message, ///< a CAF message to the receiver's actor
  };
  form kind = form::message;
  handle_id from = no_handle; ///< none: a start
  handle_id to = no_handle;
  target receiver;               ///< message: its mailbox
  caf::strong_actor_ptr address; ///< message: its actor
};

} // namespace troupe::actors
