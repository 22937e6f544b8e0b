// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/letter.hpp>
#include <troupe/comm/shm/join.hpp>
#include <troupe/comm/shm/process_memory.hpp>
#include <troupe/comm/shm/shared_segment.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace troupe::comm::shm {

/// A process of a group.
struct member {
  std::shared_ptr<shared_segment> segment;
  rank_mask ranks = 0; ///< that it has
};

/// What the processes share besides the memory of each.
struct common_memory {
  std::size_t bytes; ///< the same in equal programs
  /// Makes what is in it from bytes of 0, in process 0 before others see it.
  void (*prepare)(std::byte* at, std::size_t processes);
};

/// What a process has when it has met the others.
struct meeting {
  shared_segment common;
  std::vector<member> members; ///< all processes
};

/// Meets the other processes of the host that the options name, and exchanges
/// memory with them. Any ranks below `max_ranks` are possible if no two
/// processes have the same. Throws what `join_shm_group` throws.
meeting meet(const shm_group_options& options, const process_memory& own,
             const common_memory& common);

} // namespace troupe::comm::shm
