// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gives an application's own CAF actors the addresses of an executor's actors.
// Of the public headers of this layer, only this one, actor_op.hpp,
// messages.hpp and traced_actor.hpp include CAF.

#include <troupe/actors/executor.hpp>
#include <troupe/actors/messages.hpp>

#include <caf/actor.hpp>

#include <string_view>

namespace troupe {

/// The actor of an op or variable handle of `executor::graph()`.
///
/// The actor can be monitored and linked. It answers the request
/// `actors::describe_atom_v` with one line (a string) that describes the
/// handle and what it waits for. It answers other requests with
/// `caf::sec::unexpected_message`.
///
/// An exit message with any reason but `normal` terminates the actor. Running
/// steps then end with error(peer_failure), later steps are refused with the
/// same error, and requests are answered with
/// `caf::sec::request_receiver_down`. When the executor is destroyed, its
/// actors terminate with `caf::exit_reason::user_shutdown`, even if someone
/// holds their addresses.
///
/// Every call returns the same actor. The address can be passed to any thread,
/// but it must not outlive the actor system (see `executor_options::system`).
///
/// Throws error(not_found) if this process has no such handle. Thread rule: any
/// thread while the executor exists.
caf::actor handle_address(const executor& exe, handle_id id);
/// The same for the handle of that name, such as "conv2d#12@cpu:1" or
/// "fc_0.w_0:v1@cpu:0" (`graph::handle_name`). Looks at all handles: keep the
/// address.
caf::actor handle_address(const executor& exe, std::string_view name);

} // namespace troupe
