// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace troupe {

struct arena_state;

/// From when on returned memory can be used again. A device runs work later
/// than the host queues it, so memory may still be in use when its last handle
/// goes: by work of one stream up to a position, or by work of several streams.
///
/// Streams are numbered from 1, and positions have one order over all streams
/// of a device.
struct reuse_mark {
  static constexpr std::uint32_t at_once = 0;
  static constexpr std::uint32_t several = ~std::uint32_t{0};

  std::uint32_t stream = at_once;
  std::uint64_t position = 0; ///< of the stream, or of each of several

  /// The mark of memory that has both marks.
  friend constexpr reuse_mark both(const reuse_mark& a,
                                   const reuse_mark& b) noexcept {
    if (a.stream == at_once || b.stream == at_once)
      return a.stream == at_once ? b : a;
    return {a.stream == b.stream ? a.stream : several,
            a.position < b.position ? b.position : a.position};
  }
};

/// Reference-counted memory that an arena hands out. Use it through `buffer`.
struct memory_block {
  std::byte* data = nullptr;
  std::size_t capacity = 0;     ///< in bytes, at least the requested size
  arena_state* owner = nullptr; ///< null: the application's memory (`lend`)
  /// Number of handles on the block. Increments are relaxed because another
  /// handle already exists. Decrements are acq_rel, so that the last holder
  /// sees all writes of the others before the block is reused.
  std::atomic<std::uint32_t> references{0};
  /// Set when several variables share this memory (see `tensor::share`).
  /// Writers must then take a new buffer. The flag is written before a message
  /// tells the sharers about it, so relaxed reads suffice.
  std::atomic<bool> shared{false};
  memory_block* next = nullptr; ///< in the arena's free list
  /// While the block is free. Before, it is that of handles of sharers that
  /// have gone, guarded by the arena's lock.
  reuse_mark mark = {};
};

/// Shared handle on a block of device memory. The last handle returns the block
/// to its arena. Thread rule: as for std::shared_ptr. Different handles can be
/// used from any thread, a single handle from one thread at a time.
class buffer {
public:
  buffer() = default;
  /// Takes ownership of one reference to `block`.
  explicit buffer(memory_block* block) noexcept : block_(block) {}
  buffer(const buffer& other) noexcept : block_(other.block_) {
    if (block_)
      block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  buffer(buffer&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)) {}
  buffer& operator=(buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~buffer() { reset(); }

  /// Releases the block. The buffer is then empty.
  void reset() noexcept;
  explicit operator bool() const noexcept { return block_ != nullptr; }
  /// True if the host can read and write the block; also if the buffer is
  /// empty.
  bool is_host() const noexcept;
  /// First byte; null if the buffer is empty.
  std::byte* data() const noexcept { return block_ ? block_->data : nullptr; }
  /// Size of the block in bytes, at least the requested size; 0 if the buffer
  /// is empty.
  std::size_t capacity() const noexcept {
    return block_ ? block_->capacity : 0;
  }
  /// The block; null if the buffer is empty.
  memory_block* block() const noexcept { return block_; }

private:
  memory_block* block_ = nullptr;
};

/// Size in bytes of the largest block that is cached by size class. Larger
/// blocks are split and coalesced on demand.
inline constexpr std::size_t largest_fixed_block = 32 * 1024;

/// Where an arena gets its memory: malloc, cudaMalloc, or a test double that
/// fails on purpose. Thread rule: any thread, concurrently.
class memory_source {
public:
  virtual ~memory_source() = default;
  /// Allocates `bytes` bytes; null if there is not enough memory.
  virtual std::byte* allocate(std::size_t bytes) noexcept = 0;
  /// Frees memory from `allocate`. `bytes` is its current size, after any
  /// `resize`.
  virtual void deallocate(std::byte* data, std::size_t bytes) noexcept = 0;
  /// Resizes memory from `allocate` in place, from `bytes` to `wanted` bytes.
  /// False: not possible, and nothing has changed.
  virtual bool resize(std::byte* data, std::size_t bytes,
                      std::size_t wanted) noexcept;
  /// Discards the contents of part of the memory. The system can reclaim the
  /// pages until they are written again.
  virtual void discard(std::byte* data, std::size_t bytes) noexcept;
  /// Describes the available memory, for errors; empty if unknown.
  virtual std::string limit() const;
  /// True if the host can read and write the memory.
  virtual bool is_host() const noexcept { return true; }

  ///@{
  /// For memory that work uses later than the host queues it (`is_ordered`).
  /// `returned` is called when the calling thread returns a block, and says
  /// from when on it can be used again. `reuse` is called before a block with
  /// that mark is handed out: what the calling thread queues from now on runs
  /// only after the mark. It may throw; the block is then free again.
  virtual bool is_ordered() const noexcept { return false; }
  virtual reuse_mark returned() noexcept { return {}; }
  virtual void reuse(const reuse_mark& mark) { (void)mark; }
  ///@}
};

/// Makes a source of host memory, aligned to 64 bytes. Once more than 1 MiB has
/// been allocated, it uses huge pages and large blocks can grow in place. All
/// host memory sources of the process together stay below a limit
/// (memory_limit.hpp).
std::unique_ptr<memory_source> make_host_memory_source();

/// A caching allocator for one device.
///
/// Small blocks are cached by size class when they are released. The block
/// released last is reused first, because it is still in the CPU cache. There
/// are four size classes per power of two, rounded to multiples of 64 bytes. At
/// most 25 % of a block is wasted (63 bytes below 256 bytes).
///
/// Large blocks use best fit and are coalesced with their neighbors when
/// released (best_fit_blocks.hpp). Reserved memory therefore stays close to the
/// peak of live memory. After its first run, a training step allocates nothing
/// from the system.
///
/// Thread rule: any thread. A spin lock guards the free lists for a few
/// instructions, and longer while large blocks take memory from the source.
/// Buffers can outlive their arena; its memory source then lives until the last
/// buffer is gone.
class arena {
public:
  /// Takes its memory from `source`. Nothing is allocated before the first
  /// request.
  explicit arena(std::unique_ptr<memory_source> source);
  ~arena();
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  /// Returns at least `bytes` bytes; contents are undefined. Zero bytes give a
  /// valid buffer. Throws error(out_of_memory), with live and peak bytes, if
  /// memory is short even after trimming. The arena stays usable.
  buffer allocate(std::size_t bytes);

  /// Returns cached memory to the source.
  void trim() noexcept;

  /// True if the host can read and write this memory.
  bool is_host() const noexcept;
  /// True if `memory` is from this arena.
  bool owns(const buffer& memory) const noexcept {
    return memory && memory.block()->owner == state_;
  }

  ///@{
  /// Bytes in live blocks now, and their peak.
  std::size_t live_bytes() const noexcept;
  std::size_t peak_bytes() const noexcept;
  ///@}
  /// Bytes taken from the source: live and cached.
  std::size_t reserved_bytes() const noexcept;

private:
  void wait_for(memory_block* block);

  arena_state* state_;
};

/// Makes a buffer on host memory of the application, which is neither copied
/// nor freed.
/// @param given_back is called once, by whichever thread lets go of the last
///   handle: from then on the memory is the application's alone. It must be
///   short and must not throw. It is not called if `lend` throws
buffer lend(std::byte* memory, std::size_t bytes,
            std::function<void()> given_back = {});

/// Returns an unreferenced block to its arena, or to the application. Called by
/// `buffer`.
void release(memory_block* block) noexcept;
/// Adds the mark of the calling thread to a block that is in use; nothing in
/// memory without marks.
void note_use(memory_block& block) noexcept;

inline void buffer::reset() noexcept {
  auto* const block = std::exchange(block_, nullptr);
  if (!block)
    return;
  // Variables that share a block may be used by different streams.
  if (block->shared.load(std::memory_order_relaxed))
    note_use(*block);
  if (block->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    release(block);
}

} // namespace troupe
