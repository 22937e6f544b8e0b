// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages that handles understand as CAF actors.

#include <caf/atom.hpp>

namespace troupe::actors {

/// A readiness message ("a value is ready", "a reader is done") on an edge that
/// sends CAF messages. Its content, in this order:
///   ready_atom, number of the edge's port (uint32), step (uint64)
/// It counts only if the graph sent it. Messages from other senders are
/// ignored.
using ready_atom = caf::atom_constant<caf::atom("ready")>;

/// Request for one line (a string) that describes a handle and what it waits
/// for.
using describe_atom = caf::atom_constant<caf::atom("describe")>;

} // namespace troupe::actors
