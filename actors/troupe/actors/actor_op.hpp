// SPDX-License-Identifier: Apache-2.0
#pragma once

// Actors of an application that compute ops of a graph. As handles.hpp, this
// header includes CAF.

#include <troupe/actors/caf/caf.hpp>
#include <troupe/actors/outside_op.hpp>

#include <chrono>
#include <memory>
#include <string_view>

namespace troupe {

/// The request that an op sends to its actor. The answer is `op_outputs`. Stays
/// within the process.
struct op_request {
  std::shared_ptr<const outside_question> question;
};
/// What the actor answers: tensors by slot.
struct op_outputs {
  slot_tensors outputs;
};

///@{
/// An op that an actor computes: each run of the op is an `op_request`. For
/// `executor_options::outside_ops`.
///
/// The step fails with error(peer_failure) if the actor is gone, answers with
/// an error, or has not answered after `timeout`. A step that is cancelled
/// meanwhile ends when the answer or the timeout comes.
/// @param system that of the actor; outlives the result
std::shared_ptr<outside_op> make_actor_op(caf::actor_system& system,
                                          caf::actor whom,
                                          std::chrono::milliseconds timeout);
/// The same for an actor that is looked up in the system's registry whenever
/// the op runs, so that another one can take its place. Throws
/// error(invalid_argument) for a name that CAF's registry cannot have: in CAF
/// 0.17 it is an atom of at most 10 characters.
std::shared_ptr<outside_op> make_actor_op(caf::actor_system& system,
                                          std::string_view name,
                                          std::chrono::milliseconds timeout);
///@}

} // namespace troupe

CAF_BEGIN_TYPE_ID_BLOCK(troupe_actor_op, troupe::actors::type_ids::actor_op)
CAF_ADD_TYPE_ID(troupe_actor_op, (troupe::op_request))
CAF_ADD_TYPE_ID(troupe_actor_op, (troupe::op_outputs))
CAF_END_TYPE_ID_BLOCK(troupe_actor_op)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::op_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::op_outputs)
