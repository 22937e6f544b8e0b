// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/address_range.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace troupe {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

constexpr std::size_t in_huge_pages(std::size_t bytes) noexcept {
  return (bytes + huge_page - 1) / huge_page * huge_page;
}

// At most an eighth of the process's limit: other arenas need addresses, too.
std::size_t preferred_addresses() noexcept {
  const auto pages = std::max(1L, ::sysconf(_SC_PHYS_PAGES));
  const auto page = std::max(1L, ::sysconf(_SC_PAGESIZE));
  const auto memory =
    static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
  const auto limit = address_limit();
  return limit == SIZE_MAX ? memory : std::min(memory, limit / 8);
}

} // namespace

address_range::address_range(std::size_t bytes) noexcept {
  const auto least = in_huge_pages(bytes);
  auto wanted = std::max(in_huge_pages(preferred_addresses()), least);
  while (!reserve(wanted) && wanted > least)
    wanted = std::max(in_huge_pages(wanted / 2), least);
}

address_range::~address_range() {
  if (mapped_)
    ::munmap(mapped_, mapped_bytes_);
}

bool address_range::reserve(std::size_t bytes) noexcept {
  const auto with_border = bytes + huge_page;
  void* const at = ::mmap(nullptr, with_border, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return false;
  if (!addresses_left(addresses_for_libraries)) {
    ::munmap(at, with_border);
    return false;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  mapped_ = at;
  mapped_bytes_ = with_border;
  data_ = static_cast<std::byte*>(at) + (in_huge_pages(address) - address);
  addresses_ = bytes;
  // Only a hint: if it is refused, memory is just slower.
  ::madvise(data_, bytes, MADV_HUGEPAGE);
  return true;
}

bool address_range::resize(std::size_t bytes) noexcept {
  const auto wanted = in_huge_pages(bytes);
  if (wanted > addresses_)
    return false;
  if (wanted > usable_
      && (!data_left(wanted - usable_ + addresses_for_libraries)
          || ::mprotect(data_ + usable_, wanted - usable_,
                        PROT_READ | PROT_WRITE)
               != 0))
    return false;
  if (wanted < usable_) {
    ::madvise(data_ + wanted, usable_ - wanted, MADV_DONTNEED);
    ::mprotect(data_ + wanted, usable_ - wanted, PROT_NONE);
  }
  usable_ = wanted;
  return true;
}

} // namespace troupe
