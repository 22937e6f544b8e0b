// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace troupe {

struct arena_state;

/// Memory with a reference count, as an arena hands it out. Use `buffer`.
struct memory_block {
  std::byte* data = nullptr;
  std::size_t capacity = 0; ///< bytes, at least what was asked for
  arena_state* owner = nullptr;
  /// Holders of the block. Increments are relaxed (a holder exists already);
  /// the decrement is acq_rel so that the last one sees all writes of others
  /// before the block is handed out again.
  std::atomic<std::uint32_t> references{0};
  /// Set once several variables name this memory (see tensor::share): writers
  /// must then take a new buffer. Written before the sharers are told by
  /// message, so relaxed reads suffice.
  std::atomic<bool> shared{false};
  memory_block* next = nullptr; ///< in the arena's free list
};

/// Shared handle on a block of device memory. Copying counts references;
/// the last handle returns the block to its arena. Thread rule: like
/// shared_ptr (different handles from any thread, one handle from one).
class buffer {
public:
  buffer() = default;
  /// Takes over one reference to `block`.
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

  /// Lets go of the block; the buffer is then empty.
  void reset() noexcept;
  explicit operator bool() const noexcept { return block_ != nullptr; }
  /// First byte; null of an empty buffer.
  std::byte* data() const noexcept { return block_ ? block_->data : nullptr; }
  /// Bytes that the block has, at least those asked for; 0 of an empty one.
  std::size_t capacity() const noexcept {
    return block_ ? block_->capacity : 0;
  }
  /// The block; null of an empty buffer.
  memory_block* block() const noexcept { return block_; }

private:
  memory_block* block_ = nullptr;
};

/// Bytes of the largest block that keeps its size; larger ones are split and
/// joined as they are needed.
inline constexpr std::size_t largest_fixed_block = 32 * 1024;

/// Where an arena gets its memory: malloc, cudaMalloc, or a test that fails on
/// purpose. `allocate` returns null when there is no more. Thread rule: any
/// thread, concurrently.
class memory_source {
public:
  virtual ~memory_source() = default;
  /// Memory of `bytes` bytes; null if there are no more.
  virtual std::byte* allocate(std::size_t bytes) noexcept = 0;
  /// Takes back what `allocate`, or `resize`, made `bytes` long.
  virtual void deallocate(std::byte* data, std::size_t bytes) noexcept = 0;
  /// Makes memory of `allocate`, `bytes` long, longer or shorter where it is.
  /// False: that cannot be, and nothing has changed.
  virtual bool resize(std::byte* data, std::size_t bytes,
                      std::size_t wanted) noexcept;
  /// The contents of a part of such memory are not needed any more: the system
  /// may have its pages until they are written again.
  virtual void discard(std::byte* data, std::size_t bytes) noexcept;
  /// What there is, in words, for errors; empty if that is not known.
  virtual std::string limit() const;
};

/// Host memory, 64-byte aligned; once more than 1 MiB has been taken, in huge
/// pages. Large blocks can grow then. All of the process together stay below a
/// limit (memory_limit.hpp).
std::unique_ptr<memory_source> make_host_memory_source();

/// A caching allocator of one device. Small blocks are kept when released and
/// given out again, latest first (still in cache), by size class: powers of two
/// in four steps each and multiples of 64 bytes, so at most 25 % (below 256
/// bytes: 63 bytes) is lost. Large blocks are cut from what fits best and join
/// their neighbours when released (best_fit_blocks.hpp), so that little more is
/// reserved than is live at most. A training step that has run once allocates
/// nothing from the system.
///
/// Thread rule: any thread; a spin flag guards the lists for a few
/// instructions, and while large blocks take more from the source. Buffers may
/// outlive their arena: its memory source then lives until the last of them is
/// gone.
class arena {
public:
  /// Takes its memory from `source`, from the first allocation on.
  explicit arena(std::unique_ptr<memory_source> source);
  ~arena();
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  /// Returns at least `bytes` bytes, contents undefined. Zero bytes give a
  /// valid buffer. Throws error(out_of_memory), with what is live and was at
  /// most, after trimming did not help; the arena stays usable.
  buffer allocate(std::size_t bytes);

  /// Gives cached memory back to the source.
  void trim() noexcept;

  ///@{
  /// Bytes in blocks that are held now, and the most there ever were.
  std::size_t live_bytes() const noexcept;
  std::size_t peak_bytes() const noexcept;
  ///@}
  /// Bytes taken from the source, held and cached.
  std::size_t reserved_bytes() const noexcept;
  /// From now on `peak_bytes` is the most since this call.
  void reset_peak() noexcept;

private:
  arena_state* state_;
};

/// Gives a block that nobody holds any more back to its arena; `buffer` calls
/// it.
void release(memory_block* block) noexcept;

inline void buffer::reset() noexcept {
  if (auto* block = std::exchange(block_, nullptr);
      block && block->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    release(block);
}

} // namespace troupe
