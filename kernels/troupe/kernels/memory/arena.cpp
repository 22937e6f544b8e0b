// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/memory/best_fit_blocks.hpp>
#include <troupe/kernels/memory/size_class.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#ifdef __SANITIZE_ADDRESS__
#define TROUPE_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TROUPE_ADDRESS_SANITIZER
#endif
#endif
#ifdef TROUPE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace troupe {

namespace {

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

// Owned by the arena and, once that is gone, by the blocks that are still held.
struct arena_state {
  explicit arena_state(std::unique_ptr<memory_source> from)
    : source(std::move(from)), ordered(source->is_ordered()), large(*source) {}

  std::unique_ptr<memory_source> source;
  const bool ordered;     ///< blocks have marks
  mutable spin_lock lock; ///< guards all members below
  best_fit_blocks large;
  std::array<memory_block*, class_of(largest_fixed_block).index + 1>
    free_lists{};
  std::size_t held_blocks = 0;
  std::size_t live = 0;
  std::size_t peak = 0;
  std::size_t reserved = 0; ///< in small blocks
  bool closed = false;      ///< the arena is gone
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

memory_block* take_large(arena_state& state, std::size_t bytes) noexcept {
  guard held{state.lock};
  auto* block = state.large.take(bytes);
  if (block) {
    block->owner = &state;
    hand_out(state, block);
  }
  return block;
}

memory_block* take_small(arena_state& state, std::size_t bytes) noexcept {
  const auto wanted = class_of(bytes);
  auto* block = take_cached(state, wanted.index);
  return block ? block : take_new(state, wanted.bytes);
}

memory_block* take(arena_state& state, std::size_t bytes) noexcept {
  return bytes <= largest_fixed_block ? take_small(state, bytes)
                                      : take_large(state, bytes);
}

// The functions below are called with the lock held.

void give(arena_state& state, memory_block* block) noexcept {
  if (block->capacity > largest_fixed_block)
    return state.large.give(block);
  auto*& head = state.free_lists[class_of(block->capacity).index];
  block->next = std::exchange(head, block);
}

void take_back(arena_state& state, memory_block* block) noexcept {
  state.live -= block->capacity;
  --state.held_blocks;
  give(state, block);
}

void trim_cached(arena_state& state) noexcept {
  for (auto*& head : state.free_lists)
    while (auto* block = head) {
      head = block->next;
      state.reserved -= block->capacity;
      state.source->deallocate(block->data, block->capacity);
      delete block;
    }
  state.large.trim();
}

std::size_t reserved_by(const arena_state& state) noexcept {
  return state.reserved + state.large.reserved_bytes();
}

error out_of_memory(const arena_state& state, std::size_t bytes) {
  std::size_t live, peak, reserved;
  {
    guard held{state.lock};
    live = state.live;
    peak = state.peak;
    reserved = reserved_by(state);
  }
  const auto limit = state.source->limit();
  return {errc::out_of_memory,
          "no memory for " + std::to_string(bytes) + " bytes; "
            + std::to_string(live) + " bytes are live, " + std::to_string(peak)
            + " were at most, " + std::to_string(reserved) + " are reserved"
            + (limit.empty() ? "" : "; " + limit)};
}

#ifdef TROUPE_ADDRESS_SANITIZER
/// Makes AddressSanitizer report accesses beyond the requested size.
void guard_tail(const memory_block& block, std::size_t bytes) noexcept {
  __asan_poison_memory_region(block.data + bytes, block.capacity - bytes);
}

void unguard_tail(const memory_block& block) noexcept {
  __asan_unpoison_memory_region(block.data, block.capacity);
}
#else
void guard_tail(const memory_block&, std::size_t) noexcept {}
void unguard_tail(const memory_block&) noexcept {}
#endif

/// A block that no arena owns.
struct lent_block : memory_block {
  std::function<void()> given_back;
};

void give_back(memory_block* block) noexcept {
  const std::unique_ptr<lent_block> lent{static_cast<lent_block*>(block)};
  if (lent->given_back)
    lent->given_back();
}

} // namespace

bool memory_source::resize(std::byte*, std::size_t, std::size_t) noexcept {
  return false;
}

void memory_source::discard(std::byte*, std::size_t) noexcept {}

std::string memory_source::limit() const {
  return {};
}

arena::arena(std::unique_ptr<memory_source> source)
  : state_(new arena_state{std::move(source)}) {}

arena::~arena() {
  bool last;
  {
    guard held{state_->lock};
    trim_cached(*state_);
    state_->closed = true;
    last = state_->held_blocks == 0;
  }
  if (last)
    delete state_;
}

buffer arena::allocate(std::size_t bytes) {
  if (bytes > max_request)
    throw out_of_memory(*state_, bytes);
  auto* block = take(*state_, bytes);
  if (!block) {
    trim();
    block = take(*state_, bytes);
  }
  if (block) {
    if (block->mark.stream != reuse_mark::at_once)
      wait_for(block);
    if (!state_->ordered) // else queued work may still use the whole block
      guard_tail(*block, bytes);
    return buffer{block};
  }
  throw out_of_memory(*state_, bytes);
}

void arena::wait_for(memory_block* block) {
  try {
    state_->source->reuse(block->mark);
  } catch (...) {
    guard held{state_->lock};
    take_back(*state_, block); // with its mark
    throw;
  }
  block->mark = {};
}

bool buffer::is_host() const noexcept {
  return !block_ || !block_->owner || block_->owner->source->is_host();
}

bool arena::is_host() const noexcept {
  return state_->source->is_host();
}

void arena::trim() noexcept {
  guard held{state_->lock};
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
  return reserved_by(*state_);
}

buffer lend(std::byte* memory, std::size_t bytes,
            std::function<void()> given_back) {
  auto block = std::make_unique<lent_block>();
  block->data = memory;
  block->capacity = bytes;
  block->references.store(1, std::memory_order_relaxed);
  block->given_back = std::move(given_back);
  return buffer{block.release()};
}

void note_use(memory_block& block) noexcept {
  if (!block.owner || !block.owner->ordered)
    return;
  auto& state = *block.owner;
  const auto mark = state.source->returned();
  guard held{state.lock};
  block.mark = both(block.mark, mark);
}

void release(memory_block* block) noexcept {
  if (!block->owner)
    return give_back(block);
  auto& state = *block->owner;
  unguard_tail(*block);
  if (state.ordered)
    block->mark = both(block->mark, state.source->returned());
  bool last = false;
  {
    guard held{state.lock};
    take_back(state, block);
    if (state.closed) {
      trim_cached(state);
      last = state.held_blocks == 0;
    }
  }
  if (last)
    delete &state;
}

} // namespace troupe
