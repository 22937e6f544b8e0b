// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>

#include <cstddef>
#include <span>

namespace troupe::comm::shm {

/// Memory that the processes of a host can map. It is a file without a name
/// (memfd_create(2)), so nothing is left of it when its last process ends,
/// however that happens. A process gets access only by being sent the file.
///
/// A segment has as many addresses as it could ever need. Its pages take memory
/// once they are committed. Its size cannot change, so no process can take
/// memory away from others.
class shared_segment {
public:
  /// Makes a segment of zeros without committed pages.
  /// @param bytes a multiple of the page size
  ///
  /// Throws error(out_of_memory) if the system refuses.
  static shared_segment make(std::size_t bytes);
  /// Maps another process's segment. Throws error(peer_failure) if the file is
  /// not a segment, error(out_of_memory) if there are no addresses for it.
  static shared_segment adopt(descriptor file);

  shared_segment(shared_segment&& other) noexcept;
  shared_segment& operator=(shared_segment&& other) noexcept;
  ~shared_segment();

  /// First byte. Its address differs between processes.
  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  /// All of it.
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  /// The file to send to other processes.
  int file() const noexcept { return file_.get(); }

  /// True if all `bytes` bytes from `first` on are in the segment.
  bool contains(const std::byte* first, std::size_t bytes) const noexcept;
  /// Number of bytes before `first`, which is in the segment.
  std::size_t offset_of(const std::byte* first) const noexcept {
    return static_cast<std::size_t>(first - data_);
  }

  ///@{
  /// Commits or releases all pages that these bytes touch. False: there is not
  /// enough memory. Pages that are not committed must not be used: the system
  /// would end the process if it had no memory for them.
  bool commit(std::size_t offset, std::size_t bytes) noexcept;
  void release(std::size_t offset, std::size_t bytes) noexcept;
  ///@}

private:
  shared_segment(descriptor file, std::size_t bytes);

  descriptor file_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

} // namespace troupe::comm::shm
