// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages of node actors (node_link.hpp). Each consists of an atom,
// followed by the items that its comment lists.

#include <caf/actor.hpp>
#include <caf/atom.hpp>

#include <vector>

namespace troupe::actors {

using actor_list = std::vector<caf::actor>;

// To process 0:
/// process number (uint64), description of the run (string)
using join_atom = caf::atom_constant<caf::atom("join")>;
/// confirms that the sender knows the others
using here_atom = caf::atom_constant<caf::atom("here")>;
// From process 0:
/// node actors of all (vector<actor>)
using welcome_atom = caf::atom_constant<caf::atom("welcome")>;
using begin_atom = caf::atom_constant<caf::atom("begin")>;
/// first step that cannot run (uint64), reason why the run did not begin or has
/// ended (string)
using lost_atom = caf::atom_constant<caf::atom("lost")>;
// To and from process 0:
/// the sender leaves after this many steps (uint64) and waits for the answer;
/// when the answer arrives, everything sent before has arrived
using leave_atom = caf::atom_constant<caf::atom("leave")>;
using left_atom = caf::atom_constant<caf::atom("left")>;
// Between any processes:
/// what the sender publishes for a group: key (string), value (string)
using publish_atom = caf::atom_constant<caf::atom("publish")>;
/// of the sender's application for the receiver's: text (string)
using note_atom = caf::atom_constant<caf::atom("note")>;
/// step (uint64), failure (string)
using failed_atom = caf::atom_constant<caf::atom("failed")>;

} // namespace troupe::actors
