// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/shm/shared_segment.hpp>
#include <troupe/kernels/memory/arena.hpp>

#include <memory>

namespace troupe::comm {

/// Memory of this process that other processes of the host map when they join
/// the same group (see join_shm_group). Groups that follow each other can use
/// the same memory. Any thread.
class process_memory {
public:
  /// Throws error(out_of_memory) if the system refuses a segment.
  process_memory();

  /// The arena of this memory. Its buffers may outlive this object.
  arena& memory() noexcept { return memory_; }
  const shm::shared_segment& segment() const noexcept { return *segment_; }
  std::shared_ptr<shm::shared_segment> share_segment() const {
    return segment_;
  }

private:
  std::shared_ptr<shm::shared_segment> segment_;
  arena memory_;
};

} // namespace troupe::comm
