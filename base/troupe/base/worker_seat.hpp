// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

/// Records which thread serves a worker's list of jobs, and whether it is
/// awake. The state is one word, so every change is a single atomic step.
///
/// Two threads can have the seat: the *owner*, which is the worker's own
/// thread, and a *borrower* in its place while the owner is asleep or absent.
/// If there is a borrower, it is the server; otherwise the owner is. A sleeping
/// thread is woken only by the thread that sets its bit.
///
/// Thread rule: see each function. Memory order: all changes are acq_rel, so
/// the next server sees what the last one wrote. The two fences of job_queue
/// order a seat and the lists of jobs.
class worker_seat {
public:
  enum : std::uint32_t {
    present = 1,     ///< the owner is present
    up = 2,          ///< the owner is awake
    lent = 4,        ///< a borrower serves
    borrower_up = 8, ///< the borrower is awake
    searching = 16,  ///< the server is searching for a job
  };

  std::uint32_t now() const noexcept {
    return word_.load(std::memory_order_acquire);
  }
  bool is(std::uint32_t bit) const noexcept { return (now() & bit) != 0; }

  /// True if the server can be woken: it is present and asleep.
  static bool server_sleeps(std::uint32_t w) noexcept {
    return (w & lent) ? (w & borrower_up) == 0
                      : (w & (present | up)) == present;
  }

  /// Adds and removes bits if `holds(word)` is true. Returns the previous word,
  /// or nothing if it is false.
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
  /// The same without a condition. Returns the previous word.
  std::uint32_t change(std::uint32_t add, std::uint32_t remove) noexcept {
    std::uint32_t before = 0;
    change(add, remove, before, [](std::uint32_t) { return true; });
    return before;
  }

  /// Sleeps until `bit` is set. Called by the owner or the borrower.
  void sleep_until(std::uint32_t bit) const noexcept {
    for (auto w = now(); (w & bit) == 0; w = now())
      word_.wait(w, std::memory_order_acquire);
  }
  /// Called after setting a bit for which a thread sleeps. Notifies all,
  /// because both threads of the seat can sleep on the word.
  void notify() noexcept { word_.notify_all(); }

private:
  std::atomic<std::uint32_t> word_{0};
};

} // namespace troupe
