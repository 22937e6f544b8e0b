// SPDX-License-Identifier: Apache-2.0
#pragma once

// The door for an application's own CAF actors: addresses of the actors behind
// an executor. Includes CAF; the other public headers do not.

#include <troupe/actors/executor.hpp>
#include <troupe/actors/messages.hpp>

#include <caf/actor.hpp>

namespace troupe {

/// The actor of an op or variable handle of `executor::graph()`.
///
/// It can be monitored and linked, answers a request of
/// `actors::describe_atom::value` with one line (string) on what the handle is
/// and waits for, and other requests with `caf::sec::unexpected_message`. Told
/// to exit for another reason than `normal`, it ends: steps under way end with
/// error(peer_failure), later ones are refused with it, and requests are
/// answered with `caf::sec::request_receiver_down`. When the executor goes, its
/// actors end with `caf::exit_reason::user_shutdown`, whoever holds their
/// addresses.
///
/// Throws error(not_found) if the graph has no such handle in this process.
/// Thread rule: any thread while the executor lives; it is the same actor each
/// time. The address may go to any thread, but must not outlive the actor
/// system (see `executor_options::system`).
caf::actor handle_address(const executor& exe, handle_id id);

} // namespace troupe
