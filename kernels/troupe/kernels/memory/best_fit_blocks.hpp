// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/memory/size_class.hpp>

#include <array>
#include <cstddef>

namespace troupe {

/// Blocks cut from regions of a memory source: the free piece that fits best is
/// split, and a block that comes back joins its free neighbours, so that memory
/// serves other sizes than those it was taken for. The last region grows in
/// place where the source can make it longer; what is live then takes few
/// percent less than all that was ever taken.
///
/// Source: Wilson, Johnstone, Neely and Boles, "Dynamic storage allocation: a
/// survey and critical review", IWMM 1995 (best fit with coalescing).
///
/// Taking and giving allocate nothing once there are as many pieces as ever.
/// Thread rule: one thread at a time.
class best_fit_blocks {
public:
  explicit best_fit_blocks(memory_source& source) noexcept : source_(source) {}
  /// All blocks have been given back.
  ~best_fit_blocks();
  best_fit_blocks(const best_fit_blocks&) = delete;
  best_fit_blocks& operator=(const best_fit_blocks&) = delete;

  /// A block of at least `bytes` bytes, at most `max_request`, without owner
  /// and references; null if the source has no more.
  memory_block* take(std::size_t bytes) noexcept;
  /// `block` comes from `take`.
  void give(memory_block* block) noexcept;
  /// Gives free memory back to the source where it can take it.
  void trim() noexcept;

  /// Bytes taken from the source.
  std::size_t reserved_bytes() const noexcept { return reserved_; }

private:
  struct piece;
  struct region;

  piece* find(std::size_t bytes) const noexcept;
  piece* take_end(std::size_t bytes) noexcept;
  piece* extend_last(std::size_t bytes) noexcept;
  piece* add_region(std::size_t bytes) noexcept;
  void split(piece& p, std::size_t bytes) noexcept;
  void join_next(piece& p) noexcept;
  void list_free(piece& p) noexcept;
  void unlist(piece& p) noexcept;
  bool give_back(region& r) noexcept;
  piece* make_piece() noexcept;
  void drop_piece(piece& p) noexcept;

  memory_source& source_;
  std::array<piece*, size_classes> free_{}; // latest first
  region* regions_ = nullptr;               // latest first
  piece* spare_ = nullptr;                  // descriptions without memory
  std::size_t reserved_ = 0;
};

} // namespace troupe
