// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/spin.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

/// A ring buffer of pointers, which are taken at both ends. A spin lock guards
/// it. The lock is held for a few instructions, nearly always by the worker
/// that owns the list.
///
/// Thread rule: any thread. `empty` and `oldest` are hints, read without the
/// lock. The parking protocol of job_queue defines where they are reliable.
///
/// Memory order: the lock's release and acquire make the pusher's earlier
/// writes visible to the taker.
template <class T>
class ready_list {
public:
  bool empty() const noexcept {
    return size_.load(std::memory_order_relaxed) == 0;
  }

  void push_newest(T* value) noexcept {
    std::lock_guard guard{flag_};
    make_room();
    ring_[(first_ + count()) & mask_] = value;
    grow_by(1);
  }

  void push_oldest(T* value) noexcept {
    std::lock_guard guard{flag_};
    make_room();
    first_ = (first_ - 1) & mask_;
    ring_[first_] = value;
    grow_by(1);
  }

  /// Null if there is none.
  T* take_newest() noexcept {
    if (empty())
      return nullptr;
    std::lock_guard guard{flag_};
    if (count() == 0)
      return nullptr;
    grow_by(-1);
    return ring_[(first_ + count()) & mask_];
  }

  /// Null if there is none.
  T* take_oldest() noexcept {
    if (empty())
      return nullptr;
    std::lock_guard guard{flag_};
    if (count() == 0)
      return nullptr;
    auto* value = ring_[first_];
    first_ = (first_ + 1) & mask_;
    grow_by(-1);
    return value;
  }

private:
  std::size_t count() const noexcept {
    return static_cast<std::size_t>(size_.load(std::memory_order_relaxed));
  }
  void grow_by(std::ptrdiff_t change) noexcept {
    size_.store(size_.load(std::memory_order_relaxed) + change,
                std::memory_order_relaxed);
  }
  /// Doubles a full ring. Happens rarely, and never again once a graph has
  /// reached its maximum number of ready ops.
  void make_room() noexcept {
    if (count() <= mask_)
      return;
    std::vector<T*> larger(2 * ring_.size());
    for (std::size_t i = 0; i < ring_.size(); ++i)
      larger[i] = ring_[(first_ + i) & mask_];
    ring_ = std::move(larger);
    first_ = 0;
    mask_ = ring_.size() - 1;
  }

  static constexpr std::size_t first_room = 256; // a power of two

  spin_flag flag_;
  std::atomic<std::ptrdiff_t> size_{0}; // written under the lock
  std::size_t first_ = 0;
  std::size_t mask_ = first_room - 1;
  std::vector<T*> ring_ = std::vector<T*>(first_room);
};

} // namespace troupe
