// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/memory/best_fit_blocks.hpp>

#include <memory>
#include <new>
#include <utility>

namespace troupe {

namespace {

// When a piece is split, a rest of at least this size becomes a piece of its
// own.
constexpr std::size_t smallest_rest = 4096;

// Large blocks of equal size are staggered. If they began at equal offsets in
// their pages, they would all fall into the same sets of the first-level cache.
constexpr std::size_t stagger = 5 * cache_line;

std::size_t piece_bytes(std::size_t bytes) noexcept {
  return (bytes + cache_line - 1) / cache_line * cache_line + stagger;
}

} // namespace

/// A piece of memory between two others in its region.
struct best_fit_blocks::piece : memory_block {
  region* home = nullptr;
  piece* before = nullptr;
  piece* after = nullptr;
  bool free = false;
  // The neighbours in the list of its size class, if it is free.
  piece* newer = nullptr;
  piece* older = nullptr;
};

struct best_fit_blocks::region {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  piece* last = nullptr;
  region* earlier = nullptr;
};

best_fit_blocks::~best_fit_blocks() {
  trim();
  while (spare_)
    delete std::exchange(spare_, spare_->older);
}

memory_block* best_fit_blocks::take(std::size_t bytes) noexcept {
  const auto wanted = piece_bytes(bytes);
  auto* p = find(wanted);
  if (!p)
    p = take_end(wanted);
  if (!p)
    return nullptr;
  unlist(*p);
  split(*p, wanted);
  return p;
}

void best_fit_blocks::give(memory_block* block) noexcept {
  auto* p = static_cast<piece*>(block);
  if (p->after && p->after->free)
    join_next(*p);
  if (p->before && p->before->free) {
    p = p->before;
    unlist(*p);
    join_next(*p);
  }
  list_free(*p);
}

void best_fit_blocks::trim() noexcept {
  for (auto** r = &regions_; *r;) {
    auto* const here = *r;
    if (!give_back(*here)) {
      r = &here->earlier;
      continue;
    }
    *r = here->earlier;
    delete here;
  }
}

// The smallest piece that is large enough, from the first size class that has
// one; of equal ones the one freed last. The free end of the last region is
// used only if no other piece fits: then a repeated step finds the same pieces
// as the step that grew the end.
best_fit_blocks::piece*
best_fit_blocks::find(std::size_t bytes) const noexcept {
  const auto* const end = regions_ ? regions_->last : nullptr;
  for (auto i = class_of(bytes).index; i < free_.size(); ++i) {
    piece* best = nullptr;
    for (auto* p = free_[i]; p; p = p->older)
      if (p != end && p->capacity >= bytes
          && (!best || p->capacity < best->capacity))
        best = p;
    if (best)
      return best;
  }
  return nullptr;
}

best_fit_blocks::piece* best_fit_blocks::take_end(std::size_t bytes) noexcept {
  if (regions_ && regions_->last->free && regions_->last->capacity >= bytes)
    return regions_->last;
  auto* p = regions_ ? extend_last(bytes) : nullptr;
  return p ? p : add_region(bytes);
}

best_fit_blocks::piece*
best_fit_blocks::extend_last(std::size_t bytes) noexcept {
  auto& r = *regions_;
  auto* const tail = r.last->free ? r.last : nullptr;
  auto* const p = tail ? tail : make_piece();
  const auto missing = bytes - (tail ? tail->capacity : 0);
  if (!p || !source_.resize(r.data, r.bytes, r.bytes + missing)) {
    if (p && !tail)
      drop_piece(*p);
    return nullptr;
  }
  if (tail) {
    unlist(*tail);
  } else {
    p->home = &r;
    p->data = r.data + r.bytes;
    p->before = std::exchange(r.last, p);
    p->before->after = p;
  }
  p->capacity += missing;
  r.bytes += missing;
  reserved_ += missing;
  list_free(*p);
  return p;
}

best_fit_blocks::piece*
best_fit_blocks::add_region(std::size_t bytes) noexcept {
  std::unique_ptr<region> r{new (std::nothrow) region};
  auto* const p = r ? make_piece() : nullptr;
  if (!p)
    return nullptr;
  r->data = source_.allocate(bytes);
  if (!r->data) {
    drop_piece(*p);
    return nullptr;
  }
  r->bytes = bytes;
  r->last = p;
  p->home = r.get();
  p->data = r->data;
  p->capacity = bytes;
  r->earlier = regions_;
  regions_ = r.release();
  reserved_ += bytes;
  list_free(*p);
  return p;
}

void best_fit_blocks::split(piece& p, std::size_t bytes) noexcept {
  const auto left = p.capacity - bytes;
  auto* const rest = left >= smallest_rest ? make_piece() : nullptr;
  if (!rest)
    return;
  rest->home = p.home;
  rest->data = p.data + bytes;
  rest->capacity = left;
  rest->mark = p.mark;
  rest->before = &p;
  rest->after = std::exchange(p.after, rest);
  if (rest->after)
    rest->after->before = rest;
  else
    p.home->last = rest;
  p.capacity = bytes;
  list_free(*rest);
}

void best_fit_blocks::join_next(piece& p) noexcept {
  auto& next = *p.after;
  if (next.free)
    unlist(next);
  p.capacity += next.capacity;
  p.mark = both(p.mark, next.mark);
  p.after = next.after;
  if (p.after)
    p.after->before = &p;
  else
    p.home->last = &p;
  drop_piece(next);
}

void best_fit_blocks::list_free(piece& p) noexcept {
  auto*& head = free_[class_of(p.capacity).index];
  p.free = true;
  p.newer = nullptr;
  p.older = std::exchange(head, &p);
  if (p.older)
    p.older->newer = &p;
}

void best_fit_blocks::unlist(piece& p) noexcept {
  p.free = false;
  if (p.older)
    p.older->newer = p.newer;
  if (p.newer)
    p.newer->older = p.older;
  else
    free_[class_of(p.capacity).index] = p.older;
}

// True if the whole region has gone back to the source.
bool best_fit_blocks::give_back(region& r) noexcept {
  auto* const tail = r.last->free ? r.last : nullptr;
  if (tail && !tail->before) {
    source_.deallocate(r.data, r.bytes);
    reserved_ -= r.bytes;
    unlist(*tail);
    drop_piece(*tail);
    return true;
  }
  if (tail && source_.resize(r.data, r.bytes, r.bytes - tail->capacity)) {
    r.bytes -= tail->capacity;
    reserved_ -= tail->capacity;
    r.last = tail->before;
    r.last->after = nullptr;
    unlist(*tail);
    drop_piece(*tail);
  }
  for (auto* p = r.last; p; p = p->before)
    if (p->free)
      source_.discard(p->data, p->capacity);
  return false;
}

best_fit_blocks::piece* best_fit_blocks::make_piece() noexcept {
  auto* p = spare_;
  if (!p)
    return new (std::nothrow) piece;
  spare_ = p->older;
  p->home = nullptr;
  p->capacity = 0;
  p->mark = {};
  p->before = p->after = p->newer = p->older = nullptr;
  return p;
}

void best_fit_blocks::drop_piece(piece& p) noexcept {
  p.older = std::exchange(spare_, &p);
}

} // namespace troupe
