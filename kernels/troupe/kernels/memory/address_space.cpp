// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/address_space.hpp>

#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdint>

namespace troupe {

std::size_t address_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return SIZE_MAX;
  return static_cast<std::size_t>(limit.rlim_cur);
}

bool addresses_left(std::size_t bytes) noexcept {
  if (address_limit() == SIZE_MAX)
    return true;
  void* const at = ::mmap(nullptr, bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return false;
  ::munmap(at, bytes);
  return true;
}

} // namespace troupe
