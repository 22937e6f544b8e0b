// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/trace_event.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace troupe {

/// A ring buffer of the latest events of one thread. Only that thread writes.
/// Any number of threads read; the ring does not know them.
///
/// A page of its memory is taken from the system when the first event is
/// written there. A ring that records little is small, whatever its capacity.
///
/// Memory order: an event's words are stored with release and loaded with
/// acquire. A reader that sees a word of a newer event therefore also sees the
/// newer head, and drops its copy. A reader writes nothing that the writer or
/// another reader loads. On x86 both are ordinary moves.
class event_ring {
public:
  /// Throws std::bad_alloc if the process may not have so many addresses.
  /// @param capacity in events, a power of two
  explicit event_ring(std::size_t capacity);

  /// Appends an event. Called by the ring's thread only.
  void write(const trace_event& e) noexcept {
    // Packed by shifts, word by word. Through memory (std::bit_cast), the loads
    // of whole words would wait for the stores of the fields before them: an
    // event would cost seven times as much.
    const auto head = head_.load(std::memory_order_relaxed);
    auto* const place = place_of(head);
    const auto store = [](std::uint64_t& word, std::uint64_t value) {
      std::atomic_ref{word}.store(value, std::memory_order_release);
    };
    store(place[0], e.time);
    store(place[1], e.amount);
    store(place[2], e.from | std::uint64_t{e.to} << 32);
    store(place[3], e.step | std::uint64_t{e.worker} << 32
                      | std::uint64_t{static_cast<std::uint8_t>(e.kind)} << 48);
    head_.store(head + 1, std::memory_order_release);
  }
  /// Number of events written so far. Any thread.
  std::uint64_t written() const noexcept {
    return head_.load(std::memory_order_acquire);
  }
  /// Appends to `into` the events from number `next` on, and sets `next` to the
  /// number of the next event. Returns how many of them were overwritten before
  /// they could be read. Any thread.
  std::uint64_t read(std::uint64_t& next, std::vector<trace_event>& into) const;

private:
  using event_words = std::array<std::uint64_t, 4>;
  /// The event of which `write` has made these words.
  static trace_event unpacked(const event_words& words) noexcept;

  struct unmap {
    std::size_t bytes;
    void operator()(std::uint64_t* words) const noexcept;
  };
  using mapped_words = std::unique_ptr<std::uint64_t[], unmap>;
  static mapped_words map(std::size_t events);

  /// The first of the event's four words.
  std::uint64_t* place_of(std::uint64_t event) const noexcept {
    return words_.get() + (event & mask_) * std::tuple_size_v<event_words>;
  }

  std::uint64_t mask_;
  mapped_words words_;                             // zeros
  alignas(64) std::atomic<std::uint64_t> head_{0}; // events written
};

} // namespace troupe
