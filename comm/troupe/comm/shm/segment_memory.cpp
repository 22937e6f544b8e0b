// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/segment_memory.hpp>

#include <troupe/kernels/memory/memory_limit.hpp>
#include <troupe/kernels/memory/size_class.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace troupe::comm::shm {

namespace {

constexpr std::size_t page = 4096;

std::size_t rounded_to_lines(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + cache_line - 1) / cache_line
         * cache_line;
}

/// The free parts of a segment, by offset. Neighbours are joined.
class free_parts {
public:
  explicit free_parts(std::size_t bytes) { parts_[0] = bytes; }

  /// The offset of `bytes` free bytes: the first of them, or the last.
  std::size_t find(std::size_t bytes, bool first) const {
    const auto fits = [=](const auto& free) { return free.second >= bytes; };
    if (first) {
      const auto it = std::ranges::find_if(parts_, fits);
      return it == parts_.end() ? none : it->first;
    }
    const auto it = std::find_if(parts_.rbegin(), parts_.rend(), fits);
    return it == parts_.rend() ? none : it->first + it->second - bytes;
  }

  /// True if all these bytes are free.
  bool are_free(std::size_t offset, std::size_t bytes) const {
    auto it = parts_.upper_bound(offset);
    if (it == parts_.begin())
      return false;
    --it;
    return offset + bytes <= it->first + it->second;
  }

  /// Takes free bytes.
  void take(std::size_t offset, std::size_t bytes) {
    auto it = std::prev(parts_.upper_bound(offset));
    const auto end = it->first + it->second;
    if (offset + bytes < end)
      parts_[offset + bytes] = end - offset - bytes;
    if (it->first == offset)
      parts_.erase(it);
    else
      it->second = offset - it->first;
  }

  struct part {
    std::size_t first, end;
  };
  /// Returns the free part that these bytes are now in.
  part give(std::size_t offset, std::size_t bytes) {
    auto it = parts_.emplace(offset, bytes).first;
    const auto next = std::next(it);
    if (next != parts_.end() && offset + bytes == next->first) {
      it->second += next->second;
      parts_.erase(next);
    }
    if (it != parts_.begin())
      if (auto before = std::prev(it);
          before->first + before->second == offset) {
        before->second += it->second;
        parts_.erase(it);
        it = before;
      }
    return {it->first, it->first + it->second};
  }

  static constexpr auto none = static_cast<std::size_t>(-1);

private:
  std::map<std::size_t, std::size_t> parts_;
};

class segment_memory final : public memory_source {
public:
  explicit segment_memory(std::shared_ptr<shared_segment> segment)
    : segment_(std::move(segment)), free_(segment_->size()) {}

  std::byte* allocate(std::size_t bytes) noexcept override {
    const auto size = rounded_to_lines(bytes);
    std::lock_guard guard{mutex_};
    const auto offset = free_.find(size, size > largest_fixed_block);
    if (offset == free_parts::none || !take(offset, size))
      return nullptr;
    return segment_->data() + offset;
  }

  void deallocate(std::byte* data, std::size_t bytes) noexcept override {
    std::lock_guard guard{mutex_};
    give(segment_->offset_of(data), rounded_to_lines(bytes));
  }

  bool resize(std::byte* data, std::size_t bytes,
              std::size_t wanted) noexcept override {
    const auto old_size = rounded_to_lines(bytes),
               new_size = rounded_to_lines(wanted);
    const auto offset = segment_->offset_of(data);
    std::lock_guard guard{mutex_};
    if (new_size < old_size)
      give(offset + new_size, old_size - new_size);
    return new_size <= old_size
           || (free_.are_free(offset + old_size, new_size - old_size)
               && take(offset + old_size, new_size - old_size));
  }

  void discard(std::byte*, std::size_t) noexcept override {
    // Pages that are released must be committed before they are used again, so
    // the arena's free blocks keep theirs.
  }

  std::string limit() const override {
    return "the segment of shared memory has "
           + std::to_string(segment_->size()) + " bytes, all arenas hold "
           + std::to_string(host_memory_reserved()) + ", the limit is "
           + std::to_string(host_memory_limit());
  }

private:
  bool take(std::size_t offset, std::size_t bytes) noexcept {
    if (!reserve_host_memory(bytes))
      return false;
    try {
      if (segment_->commit(offset, bytes)) {
        free_.take(offset, bytes);
        return true;
      }
    } catch (const std::bad_alloc&) {
    }
    return_host_memory(bytes);
    return false;
  }

  void give(std::size_t offset, std::size_t bytes) noexcept {
    return_host_memory(bytes);
    try {
      // Other blocks may use the first and the last page, too.
      const auto free = free_.give(offset, bytes);
      auto first = offset / page * page;
      auto last = (offset + bytes + page - 1) / page * page;
      first += first < free.first ? page : 0;
      last -= last > free.end ? page : 0;
      if (first < last)
        segment_->release(first, last - first);
    } catch (const std::bad_alloc&) {
      // These bytes of the segment are then not used again.
    }
  }

  std::mutex mutex_; // guards `free_`
  std::shared_ptr<shared_segment> segment_;
  free_parts free_;
};

} // namespace

std::unique_ptr<memory_source>
make_segment_memory(std::shared_ptr<shared_segment> segment) {
  return std::make_unique<segment_memory>(std::move(segment));
}

} // namespace troupe::comm::shm
