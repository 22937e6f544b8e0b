// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages of node actors (node_link.hpp). Each consists of an atom,
// followed by the items that its comment lists.

#include <troupe/actors/caf/caf.hpp>

#include <vector>

namespace troupe::actors {
using actor_list = std::vector<caf::actor>;
}

CAF_BEGIN_TYPE_ID_BLOCK(troupe_nodes, troupe::actors::type_ids::nodes)

// To process 0:
/// process number (uint64), description of the run (string)
CAF_ADD_ATOM(troupe_nodes, troupe::actors, join_atom, "join")
/// confirms that the sender knows the others
CAF_ADD_ATOM(troupe_nodes, troupe::actors, here_atom, "here")
// From process 0:
/// node actors of all (vector<actor>)
CAF_ADD_ATOM(troupe_nodes, troupe::actors, welcome_atom, "welcome")
CAF_ADD_ATOM(troupe_nodes, troupe::actors, begin_atom, "begin")
/// first step that cannot run (uint64), reason why the run did not begin or has
/// ended (string)
CAF_ADD_ATOM(troupe_nodes, troupe::actors, lost_atom, "lost")
// To and from process 0:
/// the sender leaves after this many steps (uint64) and waits for the answer;
/// when the answer arrives, everything sent before has arrived
CAF_ADD_ATOM(troupe_nodes, troupe::actors, leave_atom, "leave")
CAF_ADD_ATOM(troupe_nodes, troupe::actors, left_atom, "left")
// Between any processes:
/// what the sender publishes for a group: key (string), value (string)
CAF_ADD_ATOM(troupe_nodes, troupe::actors, publish_atom, "publish")
/// of the sender's application for the receiver's: text (string)
CAF_ADD_ATOM(troupe_nodes, troupe::actors, note_atom, "note")
/// step (uint64), failure (string)
CAF_ADD_ATOM(troupe_nodes, troupe::actors, failed_atom, "failed")
// From process 0, last because others were there before:
/// the receiver is another program, or has other options: in what (string)
CAF_ADD_ATOM(troupe_nodes, troupe::actors, differs_atom, "differs")

CAF_END_TYPE_ID_BLOCK(troupe_nodes)
