// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/process_memory.hpp>

#include <troupe/comm/shm/segment_memory.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace troupe::comm {

namespace {

/// As many addresses as the machine has memory, or less if the process has few:
/// it maps the segments of other processes, too.
std::size_t segment_bytes() {
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  constexpr std::size_t least_share = 16;
  const auto pages = std::max(1L, ::sysconf(_SC_PHYS_PAGES));
  const auto page = std::max(1L, ::sysconf(_SC_PAGESIZE));
  const auto memory =
    static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
  const auto most = std::min(memory, address_limit() / least_share);
  return std::max(most / huge_page, std::size_t{1}) * huge_page;
}

} // namespace

process_memory::process_memory()
  : segment_(std::make_shared<shm::shared_segment>(
    shm::shared_segment::make(segment_bytes()))),
    memory_(shm::make_segment_memory(segment_)) {}

} // namespace troupe::comm
