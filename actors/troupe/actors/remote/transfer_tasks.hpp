// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/storage.hpp>
#include <troupe/actors/remote/transport.hpp>
#include <troupe/actors/tasks/op_task.hpp>

#include <cstdint>
#include <memory>

namespace troupe::actors {

/// Sends a variable's value along a channel, or, in a step that has failed, the
/// step's error. Ends later: when the receiver is not too far behind.
/// @param ends outlives the task
std::unique_ptr<op_task> make_send_task(transport& ends, std::uint32_t channel,
                                        const storage& from);

/// Writes a variable with what comes along a channel; an error that comes
/// instead fails the step. Ends later: when it has come, or when the step has
/// failed.
std::unique_ptr<op_task> make_recv_task(transport& ends, std::uint32_t channel,
                                        const storage& to);

} // namespace troupe::actors
