// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/shared_segment.hpp>

#include <troupe/base/error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::comm::shm {

namespace {

// A process that shrank the file would make others fail with SIGBUS.
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void refuse(std::size_t bytes) {
  throw error(errc::out_of_memory,
              "shared memory of " + std::to_string(bytes)
                + " bytes: " + std::system_category().message(errno));
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
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
  if (at == MAP_FAILED)
    refuse(bytes);
  data_ = static_cast<std::byte*>(at);
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
  return failed == 0;
}

void shared_segment::release(std::size_t offset, std::size_t bytes) noexcept {
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

} // namespace troupe::comm::shm
