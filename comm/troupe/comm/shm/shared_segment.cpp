// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/shared_segment.hpp>

#include <troupe/base/error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::comm::shm {

namespace {

// A process that shrank the file would make others fail with SIGBUS.
constexpr std::size_t small_page = 4096;
constexpr std::size_t huge_page = std::size_t{2} << 20;
#ifdef MADV_COLLAPSE
constexpr int collapse = MADV_COLLAPSE;
#else // glibc 2.36 does not know it
constexpr int collapse = 25;
#endif

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void refuse(std::size_t bytes) {
  throw error(errc::out_of_memory,
              "shared memory of " + std::to_string(bytes)
                + " bytes: " + std::system_category().message(errno));
}

/// Maps the file at an address that is aligned to a huge page; null if the
/// system refuses.
std::byte* map_aligned(int file, std::size_t bytes) {
  void* const reserved =
    ::mmap(nullptr, bytes + huge_page, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(reserved);
  const auto before = (huge_page - address % huge_page) % huge_page;
  auto* const first = static_cast<std::byte*>(reserved);
  auto* const data = first + before;
  void* const at = ::mmap(data, bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0);
  if (before > 0)
    ::munmap(first, before);
  // Up to the end of the last page, which the file may not fill.
  const auto end = (bytes + small_page - 1) / small_page * small_page;
  ::munmap(data + end, huge_page - before - (end - bytes));
  if (at != MAP_FAILED)
    return data;
  ::munmap(data, bytes);
  return nullptr;
}

/// Asks for huge pages. Only a hint: if it is refused, memory is just slower.
/// Works where the system's setting for shared memory is "never", as it is by
/// default (Linux 6.1, madvise(2)).
void ask_for_huge_pages(std::byte* data, std::size_t offset,
                        std::size_t bytes) {
  const auto first = (offset + huge_page - 1) / huge_page * huge_page;
  const auto last = (offset + bytes) / huge_page * huge_page;
  if (first < last)
    ::madvise(data + first, last - first, collapse);
}

} // namespace

shared_segment shared_segment::make(std::size_t bytes) {
  descriptor file{::memfd_create("troupe", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0
      || ::fcntl(file.get(), F_ADD_SEALS, seals) != 0)
    refuse(bytes);
  return {std::move(file), bytes};
}

shared_segment shared_segment::adopt(descriptor file) {
  struct stat found {};
  const auto sealed = ::fcntl(file.get(), F_GET_SEALS);
  if (sealed < 0 || (sealed & seals) != seals
      || ::fstat(file.get(), &found) != 0)
    throw error(errc::peer_failure,
                "another process sent a file that is not shared memory");
  return {std::move(file), static_cast<std::size_t>(found.st_size)};
}

shared_segment::shared_segment(descriptor file, std::size_t bytes)
  : file_(std::move(file)), size_(bytes) {
  data_ = map_aligned(file_.get(), bytes);
  if (!data_)
    refuse(bytes);
}

shared_segment::shared_segment(shared_segment&& other) noexcept
  : file_(std::move(other.file_)), data_(std::exchange(other.data_, nullptr)),
    size_(std::exchange(other.size_, 0)) {}

shared_segment& shared_segment::operator=(shared_segment&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

shared_segment::~shared_segment() {
  if (data_)
    ::munmap(data_, size_);
}

bool shared_segment::contains(const std::byte* first,
                              std::size_t bytes) const noexcept {
  const std::less_equal<> before;
  return before(data_, first) && before(first, data_ + size_)
         && bytes <= size_ - offset_of(first);
}

bool shared_segment::commit(std::size_t offset, std::size_t bytes) noexcept {
  int failed = 0;
  do
    failed = ::fallocate(file_.get(), 0, static_cast<off_t>(offset),
                         static_cast<off_t>(bytes));
  while (failed != 0 && errno == EINTR);
  if (failed == 0)
    ask_for_huge_pages(data_, offset, bytes);
  return failed == 0;
}

void shared_segment::release(std::size_t offset, std::size_t bytes) noexcept {
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

} // namespace troupe::comm::shm
