// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/address_space.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace troupe {

namespace {

struct bounded_memory {
  decltype(RLIMIT_AS) resource;
  const char* name;
};

constexpr bounded_memory bounded_addresses{RLIMIT_AS, "addresses (ulimit -v)"};
constexpr bounded_memory bounded_data{RLIMIT_DATA, "data (ulimit -d)"};

std::size_t limit_of(const bounded_memory& memory) noexcept {
  rlimit limit{};
  if (::getrlimit(memory.resource, &limit) != 0
      || limit.rlim_cur == RLIM_INFINITY)
    return SIZE_MAX;
  return static_cast<std::size_t>(limit.rlim_cur);
}

// What the process has taken of `memory`, in bytes.
std::size_t taken_of(const bounded_memory& memory) noexcept {
  // In pages. "data" includes the stack of the first thread, which the limit
  // does not; it is small.
  unsigned long long all = 0, data_and_stack = 0;
  if (auto* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%llu %*u %*u %*u %*u %llu", &all, &data_and_stack)
        != 2)
      all = data_and_stack = 0;
    std::fclose(file);
  }
  const auto pages = memory.resource == RLIMIT_AS ? all : data_and_stack;
  return static_cast<std::size_t>(pages)
         * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

memory_bound bound_of(const bounded_memory& memory) noexcept {
  const auto limit = limit_of(memory);
  if (limit == SIZE_MAX)
    return {memory.name, limit, limit};
  const auto taken = taken_of(memory);
  return {memory.name, limit, taken < limit ? limit - taken : 0};
}

} // namespace

std::size_t address_limit() noexcept {
  return std::min(limit_of(bounded_addresses), limit_of(bounded_data));
}

memory_bound tightest_bound() noexcept {
  const auto of_addresses = bound_of(bounded_addresses),
             of_data = bound_of(bounded_data);
  return of_data.rest < of_addresses.rest ? of_data : of_addresses;
}

bool addresses_left(std::size_t bytes) noexcept {
  if (address_limit() == SIZE_MAX)
    return true;
  // Writable, so that it counts towards both limits. It takes no memory,
  // because nothing is written.
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return false;
  ::munmap(at, bytes);
  return true;
}

bool data_left(std::size_t bytes) noexcept {
  return bound_of(bounded_data).rest >= bytes;
}

const char* out_of_memory_text() noexcept {
  return address_limit() == SIZE_MAX
           ? "out of memory"
           : "out of memory (limits: ulimit -v, ulimit -d)";
}

} // namespace troupe
