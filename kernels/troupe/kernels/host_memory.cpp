// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/arena.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>

namespace troupe {

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t page = 4096;
constexpr std::size_t huge_page = std::size_t{2} << 20;

// Small arenas (a fetched value, a file that is read) stay out of huge pages:
// clearing one takes longer than they live.
constexpr std::size_t first_slab_after = std::size_t{1} << 20;
constexpr std::size_t smallest_slab = 2 * huge_page;
constexpr std::size_t largest_slab = 16 * huge_page;

std::byte* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
  void* data = nullptr;
  if (::posix_memalign(&data, alignment, bytes) != 0)
    return nullptr;
  if (alignment == huge_page) // advice only: a refusal costs nothing but speed
    ::madvise(data, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

/// Blocks cut one behind the other from slabs of huge pages. A training step
/// walks over all its buffers; in pages of 4 KiB the processor looks up more
/// translations than it can keep.
///
/// A slab goes back to the system with the last of its blocks. Arenas keep
/// their blocks, so none is cut twice.
class host_memory_source final : public memory_source {
public:
  ~host_memory_source() override {
    for (auto& [data, s] : slabs_)
      std::free(data);
  }

  std::byte* allocate(std::size_t bytes) noexcept override {
    std::lock_guard guard{mutex_};
    taken_ += bytes;
    if (taken_ < first_slab_after)
      return allocate_aligned(cache_line, bytes);
    if (bytes > largest_slab / 2)
      return allocate_aligned(huge_page, bytes);
    return cut(bytes);
  }

  void deallocate(std::byte* data, std::size_t) noexcept override {
    std::lock_guard guard{mutex_};
    auto it = slab_of(data);
    if (it == slabs_.end())
      std::free(data);
    else if (--it->second.blocks == 0)
      drop(it);
  }

private:
  struct slab {
    std::size_t bytes = 0;
    std::size_t blocks = 0; ///< cut and not given back
  };
  using slab_map = std::map<std::byte*, slab>;

  std::byte* cut(std::size_t bytes) noexcept {
    // Blocks of equal size that begin at equal offsets in their pages would
    // all fall into the same sets of the first cache.
    const auto lines = (bytes + cache_line - 1) / cache_line * cache_line;
    const auto step = lines + (bytes >= page ? stagger : 0);
    if (!open_ || used_ + bytes > slabs_[open_].bytes)
      if (!open_slab(bytes))
        return nullptr;
    auto* block = open_ + used_;
    used_ = std::min(used_ + step, slabs_[open_].bytes);
    ++slabs_[open_].blocks;
    return block;
  }

  bool open_slab(std::size_t bytes) noexcept {
    auto size = next_slab_;
    while (size < bytes)
      size *= 2;
    auto* data = allocate_aligned(huge_page, size);
    if (!data || !remember(data, size)) {
      std::free(data);
      return false;
    }
    open_ = data;
    used_ = 0;
    next_slab_ = std::min(2 * size, largest_slab);
    return true;
  }

  bool remember(std::byte* data, std::size_t bytes) noexcept {
    try {
      slabs_[data].bytes = bytes;
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  slab_map::iterator slab_of(std::byte* block) noexcept {
    auto it = slabs_.upper_bound(block);
    if (it == slabs_.begin())
      return slabs_.end();
    --it;
    return block < it->first + it->second.bytes ? it : slabs_.end();
  }

  void drop(slab_map::iterator it) noexcept {
    if (it->first == open_)
      open_ = nullptr;
    std::free(it->first);
    slabs_.erase(it);
  }

  static constexpr std::size_t stagger = 5 * cache_line;

  std::mutex mutex_; // guards all that follows
  std::size_t taken_ = 0;
  slab_map slabs_;
  std::byte* open_ = nullptr; // the slab that blocks are cut from
  std::size_t used_ = 0;      // its bytes that are cut
  std::size_t next_slab_ = smallest_slab;
};

} // namespace

std::unique_ptr<memory_source> make_host_memory_source() {
  return std::make_unique<host_memory_source>();
}

} // namespace troupe
