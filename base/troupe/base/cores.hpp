// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstddef>

namespace troupe {

/// Cores that this process may use: those of its main thread's mask when they
/// are first asked for, whichever thread asks.
std::size_t usable_cores() noexcept;

/// Whether so many threads that work take all usable cores, so that each may be
/// bound to its own. Fewer had better go where the system puts them: other
/// processes that leave cores free, too, would bind theirs to the same ones.
bool take_all_cores(std::size_t threads) noexcept;

/// Number of the core that the calling thread is on among those, now.
std::size_t current_core() noexcept;

/// Binds the calling thread to core `index` modulo the usable ones. Returns
/// false where the system refuses.
bool pin_this_thread(std::size_t index) noexcept;

/// Keeps the calling thread on one core while it lives, then lets it go where
/// it was allowed before. Does nothing where the thread must not go there.
class stay_on_core {
public:
  explicit stay_on_core(std::size_t index) noexcept;
  ~stay_on_core();
  stay_on_core(const stay_on_core&) = delete;
  stay_on_core& operator=(const stay_on_core&) = delete;

private:
  cpu_set_t before_;
  bool moved_ = false;
};

} // namespace troupe
