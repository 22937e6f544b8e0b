// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace troupe {

/// Gives the calling thread a stack of its own for signal handlers that ask for
/// one (SA_ONSTACK), unless it has one; it is there until the thread ends.
/// Returns false if the system has no memory for it.
///
/// Generated code can use the stack pointer as one more register for data, as
/// oneDNN's matrix products do. A handler without a stack of its own would then
/// write its frames into that data.
bool have_signal_stack() noexcept;

} // namespace troupe
