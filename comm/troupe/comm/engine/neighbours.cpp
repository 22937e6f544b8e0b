// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/engine/neighbours.hpp>

#include <troupe/base/error.hpp>

#include <new>
#include <string>

namespace troupe::comm {

neighbours::neighbours(const shm_group_options& at,
                       std::shared_ptr<process_memory> own)
  : met_(shm::meet(at, *own,
                   {sizeof(common_part) + shm::bytes_of_rings(at.processes),
                    [](std::byte* all, std::size_t processes) {
                      new (all) common_part;
                      shm::make_rings(all + sizeof(common_part), processes);
                    }})),
    self_(at.process) {}

neighbours::common_part& neighbours::common() const noexcept {
  return *std::launder(reinterpret_cast<common_part*>(met_.common.data()));
}

bool neighbours::is_shared(const std::byte* first,
                           std::size_t bytes) const noexcept {
  return met_.members[self_].segment->contains(first, bytes);
}

std::uint64_t neighbours::place_of(const std::byte* first) const noexcept {
  return met_.members[self_].segment->offset_of(first);
}

const std::byte* neighbours::at(std::size_t of, std::uint64_t place,
                                std::size_t bytes) const {
  const auto& segment = *met_.members[of].segment;
  if (place > segment.size() || bytes > segment.size() - place)
    throw error(errc::peer_failure, "process " + std::to_string(of)
                                      + " of this host has no such memory");
  return segment.data() + place;
}

void neighbours::break_off() noexcept {
  common().has_broken_off[self_].store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void neighbours::require_intact() const {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto& flags = common().has_broken_off;
  for (std::size_t p = 0; p < count(); ++p)
    if (p != self_ && flags[p].load(std::memory_order_relaxed) != 0)
      throw error(errc::peer_failure, "process " + std::to_string(p)
                                        + " of this host has broken off");
}

} // namespace troupe::comm
