// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/shm/shared_segment.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <memory>

namespace troupe::comm::shm {

/// Makes a source of memory in a segment for an arena, aligned to 64 bytes.
/// Large blocks are taken from the segment's beginning, so that the last one
/// can grow in place; small ones from its end. Counts as host memory of the
/// process (memory_limit.hpp).
std::unique_ptr<memory_source>
make_segment_memory(std::shared_ptr<shared_segment> segment);

} // namespace troupe::comm::shm
