// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/address_space.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace troupe {

std::size_t address_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return SIZE_MAX;
  return static_cast<std::size_t>(limit.rlim_cur);
}

std::size_t address_rest() noexcept {
  const auto limit = address_limit();
  if (limit == SIZE_MAX)
    return limit;
  unsigned long long pages = 0; // the first number
  if (auto* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%llu", &pages) != 1)
      pages = 0;
    std::fclose(file);
  }
  const auto taken = static_cast<std::size_t>(pages)
                     * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return taken < limit ? limit - taken : 0;
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
