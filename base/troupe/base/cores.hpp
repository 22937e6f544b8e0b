// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace troupe {

/// Cores that this process may use: those of its main thread's mask when they
/// are first asked for, whichever thread asks.
std::size_t usable_cores() noexcept;

/// Number of the core that the calling thread is on among those, now.
std::size_t current_core() noexcept;

/// Binds the calling thread to core `index` modulo the usable ones. Returns
/// false where the system refuses.
bool pin_this_thread(std::size_t index) noexcept;

} // namespace troupe
