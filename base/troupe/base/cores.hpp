// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstddef>

namespace troupe {

/// Number of cores that this process can use: those in its main thread's
/// affinity mask at the first call, on any thread.
std::size_t usable_cores() noexcept;

/// True if this many busy threads take all usable cores, so that each can be
/// pinned to its own core. Fewer threads are better placed by the system: other
/// processes that leave cores free would pin theirs to the same cores.
bool take_all_cores(std::size_t threads) noexcept;

/// The usable cores of part `part` if they are divided into `parts` equal parts
/// of successive cores. All usable cores if there are fewer than `parts`.
cpu_set_t part_of_cores(std::size_t part, std::size_t parts) noexcept;

/// Index, among the usable cores, of the core that the calling thread runs on.
std::size_t current_core() noexcept;

/// Pins the calling thread to usable core `index`, modulo their number. Returns
/// false if the system refuses.
bool pin_this_thread(std::size_t index) noexcept;

/// Pins the calling thread to one core during the object's lifetime, then
/// restores its affinity mask. Does nothing if that core is not allowed for the
/// thread.
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
