// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages that handles understand as CAF actors.

#include <troupe/actors/caf/caf.hpp>

CAF_BEGIN_TYPE_ID_BLOCK(troupe_handles, troupe::actors::type_ids::handles)

/// A readiness message ("a value is ready", "a reader is done") on an edge that
/// sends CAF messages. Its content, in this order:
///   ready_atom, number of the edge's port (uint32), step (uint64)
/// It counts only if the graph sent it. Messages from other senders are
/// ignored.
CAF_ADD_ATOM(troupe_handles, troupe::actors, ready_atom, "ready")

/// Request for one line (a string) that describes a handle and what it waits
/// for.
CAF_ADD_ATOM(troupe_handles, troupe::actors, describe_atom, "describe")

CAF_END_TYPE_ID_BLOCK(troupe_handles)
