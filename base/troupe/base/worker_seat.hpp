// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

/// Who serves a worker's list of jobs, and whether that thread is awake. All of
/// it is one word, so that every change is a single atomic step.
///
/// Two threads may sit here: the *owner*, which is the worker's own, and a
/// *borrower* in its place while the owner sleeps or is away. The one that
/// serves is the borrower if there is one. Who sleeps is woken by the thread
/// that sets its bit, and by no other.
///
/// Thread rule: as each function says. Memory order: all changes are acq_rel,
/// so whoever serves next sees what the last one left; the order between a seat
/// and the lists of jobs is job_queue's affair (its two fences).
class worker_seat {
public:
  enum : std::uint32_t {
    present = 1,     ///< the owner has come and not left
    up = 2,          ///< the owner is awake
    lent = 4,        ///< a borrower serves
    borrower_up = 8, ///< the borrower is awake
    searching = 16,  ///< the server looks for a job
  };

  std::uint32_t now() const noexcept {
    return word_.load(std::memory_order_acquire);
  }
  bool is(std::uint32_t bit) const noexcept { return (now() & bit) != 0; }

  /// The server could be woken: it is there and sleeps.
  static bool server_sleeps(std::uint32_t w) noexcept {
    return (w & lent) ? (w & borrower_up) == 0
                      : (w & (present | up)) == present;
  }

  /// Adds and removes bits if `holds(word)`; the word before, or nothing if it
  /// does not hold.
  template <class Condition>
  bool change(std::uint32_t add, std::uint32_t remove, std::uint32_t& before,
              Condition holds) noexcept {
    before = word_.load(std::memory_order_relaxed);
    do {
      if (!holds(before))
        return false;
    } while (!word_.compare_exchange_weak(before, (before & ~remove) | add,
                                          std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    return true;
  }
  /// The same without a condition; returns the word before.
  std::uint32_t change(std::uint32_t add, std::uint32_t remove) noexcept {
    std::uint32_t before = 0;
    change(add, remove, before, [](std::uint32_t) { return true; });
    return before;
  }

  /// Sleeps until `bit` is set. By the owner or the borrower.
  void sleep_until(std::uint32_t bit) const noexcept {
    for (auto w = now(); (w & bit) == 0; w = now())
      word_.wait(w, std::memory_order_acquire);
  }
  /// After setting a bit that a thread sleeps for. Both threads of the seat may
  /// sleep on the word, hence all.
  void notify() noexcept { word_.notify_all(); }

private:
  std::atomic<std::uint32_t> word_{0};
};

} // namespace troupe
