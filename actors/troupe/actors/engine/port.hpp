// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/mailbox.hpp>
#include <troupe/base/ids.hpp>

#include <caf/actor_control_block.hpp>

#include <cstdint>

namespace troupe::actors {

/// The sending end of an edge that is not a call into a mailbox of this
/// process. The form of an edge is chosen when the graph is wired; senders do
/// not depend on it.
struct port {
  enum class form : std::uint8_t {
    counter, ///< a call into a mailbox of this process: no port is needed
    message, ///< a CAF message to the receiver's actor
  };
  form kind = form::message;
  handle_id from = no_handle; ///< `no_handle`: a start
  handle_id to = no_handle;
  target receiver;               ///< form `message`: the receiver's mailbox
  caf::strong_actor_ptr address; ///< form `message`: the receiver's actor
};

} // namespace troupe::actors
