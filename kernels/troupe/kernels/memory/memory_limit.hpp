// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace troupe {

// The host memory that all arenas of this process take from the system
// together. It belongs to the process because the system's out-of-memory killer
// looks at the process: it ends one that uses more than there is, without a
// word, for memory is only found missing when it is written to.
//
// Thread rule: any thread.

/// The most bytes that arenas may hold; what goes beyond is
/// error(out_of_memory). Until it is set: 15/16 of the machine's memory or of
/// what the process's control groups (cgroups) leave it, whichever is less. The
/// rest is for the program and what libraries allocate.
std::size_t host_memory_limit();
/// Sets it; 0 brings the default back. What is held already stays.
void set_host_memory_limit(std::size_t bytes) noexcept;

/// Bytes that arenas hold now, cached ones included.
std::size_t host_memory_reserved() noexcept;

/// For sources of host memory. False: the limit does not allow it, and nothing
/// has changed.
bool reserve_host_memory(std::size_t bytes) noexcept;
void return_host_memory(std::size_t bytes) noexcept;

/// The least limit in the files of the control groups of a process, which
/// `groups` (the text of /proc/PID/cgroup) names, below the folder `root`
/// (/sys/fs/cgroup). SIZE_MAX if there is none.
std::size_t control_group_limit(const std::string& groups,
                                const std::string& root);

} // namespace troupe
