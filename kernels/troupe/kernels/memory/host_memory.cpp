// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/address_range.hpp>
#include <troupe/kernels/memory/address_space.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/memory/memory_limit.hpp>
#include <troupe/kernels/memory/size_class.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t slab_bytes = std::size_t{2} << 20; // a huge page

// Small arenas (a fetched value, a file that is read) use no huge pages:
// clearing one takes longer than they live.
constexpr std::size_t huge_pages_after = std::size_t{1} << 20;

std::byte* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
  void* data = nullptr;
  if (::posix_memalign(&data, alignment, bytes) != 0)
    return nullptr;
  return static_cast<std::byte*>(data);
}

/// Small blocks are cut from slabs, each of which is a huge page; large blocks
/// can grow. A training step visits all its buffers: with pages of 4 KiB it
/// would need more address translations than the processor caches.
///
/// A slab is returned to the system with the last of its blocks. Arenas keep
/// their small blocks, so a slab's memory is never cut twice.
class host_memory_source final : public memory_source {
public:
  ~host_memory_source() override {
    for (auto& [data, blocks] : slabs_) {
      std::free(data);
      return_host_memory(slab_bytes);
    }
  }

  std::byte* allocate(std::size_t bytes) noexcept override {
    std::lock_guard guard{mutex_};
    taken_ += bytes;
    if (taken_ < huge_pages_after)
      return reserved(bytes,
                      [&] { return allocate_aligned(cache_line, bytes); });
    if (bytes > largest_fixed_block)
      return reserved(bytes, [&] { return open_range(bytes); });
    return cut(bytes);
  }

  void deallocate(std::byte* data, std::size_t bytes) noexcept override {
    std::lock_guard guard{mutex_};
    if (ranges_.erase(data) > 0)
      return return_host_memory(bytes);
    auto it = slab_of(data);
    if (it != slabs_.end()) {
      if (--it->second == 0)
        drop(it);
      return;
    }
    std::free(data);
    return_host_memory(bytes);
  }

  bool resize(std::byte* data, std::size_t bytes,
              std::size_t wanted) noexcept override {
    std::lock_guard guard{mutex_};
    const auto range = ranges_.find(data);
    if (range == ranges_.end())
      return false;
    const auto more = wanted > bytes ? wanted - bytes : 0;
    if (!reserve_host_memory(more))
      return false;
    const auto done = range->second.resize(wanted);
    if (!done)
      return_host_memory(more);
    else if (wanted < bytes)
      return_host_memory(bytes - wanted);
    return done;
  }

  void discard(std::byte* data, std::size_t bytes) noexcept override {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const auto first = (address + page - 1) / page * page;
    const auto last = (address + bytes) / page * page;
    if (first < last)
      ::madvise(data + (first - address), last - first, MADV_DONTNEED);
  }

  std::string limit() const override {
    const auto bound = tightest_bound();
    return "all arenas of the process hold "
           + std::to_string(host_memory_reserved()) + ", the limit is "
           + std::to_string(host_memory_limit())
           + (bound.limit == SIZE_MAX ? ""
                                      : std::string{", that of "} + bound.name
                                          + " " + std::to_string(bound.limit));
  }

private:
  using range_map = std::map<std::byte*, address_range>;
  using slab_map = std::map<std::byte*, std::size_t>; // number of blocks in use

  /// The result of `allocate`, if the limit allows `bytes` more bytes; else
  /// null.
  template <class Allocate>
  static std::byte* reserved(std::size_t bytes, Allocate allocate) noexcept {
    if (!reserve_host_memory(bytes))
      return nullptr;
    auto* data = allocate();
    if (!data)
      return_host_memory(bytes);
    return data;
  }

  std::byte* open_range(std::size_t bytes) noexcept {
    try {
      range_map made;
      auto node = made.extract(made.try_emplace(nullptr, bytes).first);
      auto& range = node.mapped();
      if (!range.data() || !range.resize(bytes))
        return nullptr;
      node.key() = range.data();
      return ranges_.insert(std::move(node)).position->first;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  std::byte* cut(std::size_t bytes) noexcept {
    // Blocks of equal size that begin at equal offsets in their pages would all
    // fall into the same sets of the first-level cache.
    const auto lines = (bytes + cache_line - 1) / cache_line * cache_line;
    const auto step = lines + (bytes >= page ? stagger : 0);
    if (!open_ || used_ + bytes > slab_bytes)
      if (!open_slab())
        return nullptr;
    auto* block = open_ + used_;
    used_ = std::min(used_ + step, slab_bytes);
    ++slabs_[open_];
    return block;
  }

  bool open_slab() noexcept {
    if (!addresses_left(addresses_for_libraries))
      return false;
    auto* data = reserved(
      slab_bytes, [] { return allocate_aligned(slab_bytes, slab_bytes); });
    if (!data)
      return false;
    if (!remember(data)) {
      std::free(data);
      return_host_memory(slab_bytes);
      return false;
    }
    // Only a hint: if it is refused, memory is just slower.
    ::madvise(data, slab_bytes, MADV_HUGEPAGE);
    open_ = data;
    used_ = 0;
    return true;
  }

  bool remember(std::byte* slab) noexcept {
    try {
      slabs_.emplace(slab, 0);
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
    return block < it->first + slab_bytes ? it : slabs_.end();
  }

  void drop(slab_map::iterator it) noexcept {
    if (it->first == open_)
      open_ = nullptr;
    std::free(it->first);
    return_host_memory(slab_bytes);
    slabs_.erase(it);
  }

  static constexpr std::size_t stagger = 5 * cache_line;

  std::mutex mutex_; // guards all members below
  std::size_t taken_ = 0;
  range_map ranges_; // by their data pointers
  slab_map slabs_;
  std::byte* open_ = nullptr; // the slab that blocks are cut from
  std::size_t used_ = 0;      // bytes of it that are used up
};

} // namespace

std::unique_ptr<memory_source> make_host_memory_source() {
  return std::make_unique<host_memory_source>();
}

} // namespace troupe
