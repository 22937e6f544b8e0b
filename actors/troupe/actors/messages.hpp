// SPDX-License-Identifier: Apache-2.0
#pragma once

// All message types of Troupe's actors.

#include <troupe/kernels/stream.hpp>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>

#include <cstdint>

namespace troupe::actors {

/// "A value is ready, a reader is done, a step begins": one readiness message
/// along an edge. Its content, in this order:
///   ready_atom, in-edge of the receiver (uint32), slot of the step (uint32),
///   phase (uint8), ticket (uint64), failed (bool), value (string, often empty)
using ready_atom = caf::atom_constant<caf::atom("ready")>;

/// Request: one line on what a handle is and what it waits for (string).
using describe_atom = caf::atom_constant<caf::atom("describe")>;

/// Which part of an op's life a readiness message announces.
enum class phase : std::uint8_t {
  launched, ///< queued on its stream; `position` says when it is there
  finished, ///< there for everyone
  both,     ///< launched and finished at once (host streams); as the need of
            ///< a receiver: every announcement
};

/// A readiness message in its local form.
struct readiness {
  std::uint32_t slot = 0; ///< the step, as its slot among the steps in flight
  phase what = phase::both;
  bool failed = false; ///< nothing was computed; receivers must not either
  ticket position = 0; ///< on the sender's stream; 0: there already
};

} // namespace troupe::actors
