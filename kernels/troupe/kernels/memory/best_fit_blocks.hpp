// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/memory/arena.hpp>
#include <troupe/kernels/memory/size_class.hpp>

#include <array>
#include <cstddef>

namespace troupe {

/// Blocks cut from regions of a memory source. The free piece that fits best is
/// split. A block that is returned is merged with free neighbours, so memory
/// can be reused for other sizes. If the source allows it, the last region
/// grows in place; reserved memory then exceeds the peak of live memory by a
/// few percent only.
///
/// Source: Wilson, Johnstone, Neely and Boles, "Dynamic storage allocation: a
/// survey and critical review", IWMM 1995 (best fit with coalescing).
///
/// `take` and `give` allocate no descriptors once there are as many pieces as
/// ever before. Thread rule: one thread at a time.
class best_fit_blocks {
public:
  explicit best_fit_blocks(memory_source& source) noexcept : source_(source) {}
  /// All blocks must have been given back.
  ~best_fit_blocks();
  best_fit_blocks(const best_fit_blocks&) = delete;
  best_fit_blocks& operator=(const best_fit_blocks&) = delete;

  /// Returns a block of at least `bytes` bytes, at most `max_request`, without
  /// owner and references; null if the source has no more memory.
  memory_block* take(std::size_t bytes) noexcept;
  /// Takes a block from `take` back.
  void give(memory_block* block) noexcept;
  /// Returns free memory to the source where the source can take it.
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
  // descriptors for reuse, without memory
  piece* spare_ = nullptr;
  std::size_t reserved_ = 0;
};

} // namespace troupe
