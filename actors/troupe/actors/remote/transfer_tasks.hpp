// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/storage.hpp>
#include <troupe/actors/remote/transport.hpp>
#include <troupe/actors/tasks/op_task.hpp>

#include <cstdint>
#include <memory>

namespace troupe::actors {

/// Makes a task that sends a variable's value through a channel, or the step's
/// error if the step has failed. Asynchronous: it completes when the receiver
/// is not too far behind.
/// @param ends outlives the task
/// @param only_in_updates in steps that do not update the parameters, sends an
///   item without a value
std::unique_ptr<op_task> make_send_task(transport& ends, std::uint32_t channel,
                                        const storage& from,
                                        bool only_in_updates = false);

/// Makes a task that writes the value from a channel to a variable. An error
/// from the channel fails the step. Asynchronous: it completes when the value
/// has arrived or the step has failed.
/// @param only_in_updates in steps that do not update the parameters, the
///   variable keeps its value
std::unique_ptr<op_task> make_recv_task(transport& ends, std::uint32_t channel,
                                        const storage& to,
                                        bool only_in_updates = false);

} // namespace troupe::actors
