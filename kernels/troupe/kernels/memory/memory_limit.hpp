// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace troupe {

// Limits the host memory that all arenas of this process together take from the
// system. The limit is per process because the system's out-of-memory killer
// acts on processes. Linux grants memory before it is backed by pages, so
// without a limit a process is killed later, without an error, when it writes
// to the memory.
//
// Thread rule: any thread.

/// Maximum number of bytes that arenas can hold. Allocations beyond it throw
/// error(out_of_memory). Default: 15/16 of the machine's memory or of the
/// process's cgroup limit, whichever is less. The rest is left for the program
/// and its libraries.
std::size_t host_memory_limit();
/// Sets the limit; 0 restores the default. Memory already held is not affected.
void set_host_memory_limit(std::size_t bytes) noexcept;

/// Bytes that arenas hold now, including cached memory.
std::size_t host_memory_reserved() noexcept;

/// Called by sources of host memory to account for memory they take and return.
/// False: the limit does not allow it, and nothing has changed.
bool reserve_host_memory(std::size_t bytes) noexcept;
/// Takes back what `reserve_host_memory` has counted. Any thread.
void return_host_memory(std::size_t bytes) noexcept;

/// The lowest memory limit of a process's cgroups; SIZE_MAX if there is none.
/// `groups` is the text of /proc/PID/cgroup and `root` is the cgroup file
/// system (/sys/fs/cgroup).
std::size_t control_group_limit(const std::string& groups,
                                const std::string& root);

} // namespace troupe
