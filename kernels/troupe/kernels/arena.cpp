// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/arena.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <string>
#include <thread>

namespace troupe {

namespace {

constexpr std::size_t cache_line = 64;

// A request above this cannot be served on any machine; the bound keeps the
// arithmetic of size classes free of overflow.
constexpr std::size_t max_request = std::size_t{1} << 60;

struct size_class {
  std::size_t index; ///< of the free list
  std::size_t bytes; ///< of its blocks
};

// In cache lines: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ...
constexpr size_class class_of(std::size_t bytes) noexcept {
  auto lines = std::max<std::size_t>(1, (bytes + cache_line - 1) / cache_line);
  if (lines <= 4)
    return {lines - 1, lines * cache_line};
  auto exponent = static_cast<std::size_t>(std::bit_width(lines - 1)) - 3;
  auto steps = ((lines - 1) >> exponent) + 1; // 5 to 8
  return {4 * exponent + steps - 1, (steps << exponent) * cache_line};
}

// Guards a few instructions. Yields after a while, because the holder may have
// lost its core.
class spin_lock {
public:
  void lock() noexcept {
    for (int tries = 0; flag_.test_and_set(std::memory_order_acquire); ++tries)
      if (tries >= 64)
        std::this_thread::yield();
  }
  void unlock() noexcept { flag_.clear(std::memory_order_release); }

private:
  std::atomic_flag flag_;
};

} // namespace

// Belongs to the arena and, after it, to the blocks that are still held.
struct arena_state {
  explicit arena_state(std::unique_ptr<memory_source> from)
    : source(std::move(from)) {}

  std::unique_ptr<memory_source> source;
  mutable spin_lock lock; ///< guards all that follows
  std::array<memory_block*, class_of(max_request).index + 1> free_lists{};
  std::size_t held_blocks = 0;
  std::size_t live = 0;
  std::size_t peak = 0;
  std::size_t reserved = 0;
  bool closed = false; ///< the arena is gone
};

namespace {

using guard = std::lock_guard<spin_lock>;

void hand_out(arena_state& state, memory_block* block) noexcept {
  ++state.held_blocks;
  state.live += block->capacity;
  state.peak = std::max(state.peak, state.live);
  block->next = nullptr;
  block->references.store(1, std::memory_order_relaxed);
  block->shared.store(false, std::memory_order_relaxed);
}

memory_block* take_cached(arena_state& state, std::size_t index) noexcept {
  guard held{state.lock};
  auto*& head = state.free_lists[index];
  auto* block = head;
  if (block) {
    head = block->next;
    hand_out(state, block);
  }
  return block;
}

memory_block* take_new(arena_state& state, std::size_t bytes) noexcept {
  std::unique_ptr<memory_block> block{new (std::nothrow) memory_block};
  if (!block)
    return nullptr;
  block->data = state.source->allocate(bytes);
  if (!block->data)
    return nullptr;
  block->capacity = bytes;
  block->owner = &state;
  guard held{state.lock};
  state.reserved += bytes;
  hand_out(state, block.get());
  return block.release();
}

void destroy(arena_state& state, memory_block* block) noexcept {
  state.source->deallocate(block->data, block->capacity);
  delete block;
}

// All cached blocks as one list, no longer counted as reserved.
memory_block* take_all_cached(arena_state& state) noexcept {
  guard held{state.lock};
  memory_block* all = nullptr;
  for (auto*& head : state.free_lists)
    while (auto* block = head) {
      head = std::exchange(block->next, all);
      all = block;
      state.reserved -= block->capacity;
    }
  return all;
}

void trim_cached(arena_state& state) noexcept {
  auto* block = take_all_cached(state);
  while (block)
    destroy(state, std::exchange(block, block->next));
}

error out_of_memory(const arena_state& state, std::size_t bytes) {
  guard held{state.lock};
  return {errc::out_of_memory,
          "no memory for " + std::to_string(bytes) + " bytes; "
            + std::to_string(state.live) + " bytes are live and "
            + std::to_string(state.reserved) + " reserved"};
}

} // namespace

arena::arena(std::unique_ptr<memory_source> source)
  : state_(new arena_state{std::move(source)}) {}

arena::~arena() {
  trim_cached(*state_);
  bool last;
  {
    guard held{state_->lock};
    state_->closed = true;
    last = state_->held_blocks == 0;
  }
  if (last)
    delete state_;
}

buffer arena::allocate(std::size_t bytes) {
  if (bytes > max_request)
    throw out_of_memory(*state_, bytes);
  auto wanted = class_of(bytes);
  if (auto* block = take_cached(*state_, wanted.index))
    return buffer{block};
  if (auto* block = take_new(*state_, wanted.bytes))
    return buffer{block};
  trim();
  if (auto* block = take_new(*state_, wanted.bytes))
    return buffer{block};
  throw out_of_memory(*state_, bytes);
}

void arena::trim() noexcept {
  trim_cached(*state_);
}

std::size_t arena::live_bytes() const noexcept {
  guard held{state_->lock};
  return state_->live;
}

std::size_t arena::peak_bytes() const noexcept {
  guard held{state_->lock};
  return state_->peak;
}

std::size_t arena::reserved_bytes() const noexcept {
  guard held{state_->lock};
  return state_->reserved;
}

void arena::reset_peak() noexcept {
  guard held{state_->lock};
  state_->peak = state_->live;
}

void release(memory_block* block) noexcept {
  auto& state = *block->owner;
  bool last;
  {
    guard held{state.lock};
    state.live -= block->capacity;
    --state.held_blocks;
    if (!state.closed) {
      auto*& head = state.free_lists[class_of(block->capacity).index];
      block->next = std::exchange(head, block);
      return;
    }
    last = state.held_blocks == 0;
  }
  destroy(state, block);
  if (last)
    delete &state;
}

} // namespace troupe
