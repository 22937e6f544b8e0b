// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages that handles understand as CAF actors.

#include <caf/atom.hpp>

namespace troupe::actors {

/// "A value is ready, a reader is done": one readiness message along an edge
/// that is a CAF message. Its content, in this order:
///   ready_atom, number of the edge's port (uint32), step (uint64)
/// It counts if the graph has sent it: nobody else can sign it.
using ready_atom = caf::atom_constant<caf::atom("ready")>;

/// Request: one line on what a handle is and what it waits for (string).
using describe_atom = caf::atom_constant<caf::atom("describe")>;

} // namespace troupe::actors
