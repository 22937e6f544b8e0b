// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/ready_op.hpp>
#include <troupe/base/ids.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>

namespace troupe::actors {

class op_task;
struct engine_stream;
struct step_state;

// An op or variable handle while its graph runs is a counting mailbox.
//
// It has one counter of missing messages per step in flight. The sender of the
// last message arms the counter, that is, resets it for the next step that uses
// it. It then opens the mailbox: a variable notifies its readers, an op goes to
// its stream. This needs no queue, no lock and no allocation.
//
// Memory order. A decrement is acq_rel. Its release half publishes what the
// sender wrote. Its acquire half, on the last decrement, makes the writes of
// all senders visible, because the decrements of one counter form a release
// sequence. A sender that reads a count of one (acquire) is the only sender
// left and has seen all others. It need not decrement, so a chain runs without
// locked instructions. If one serial stream sends all messages, plain loads and
// stores suffice, because the stream's inbox orders its drains on different
// workers. An op moves to another worker through a stream's inbox or the job
// queue, and both order it again. Arming is relaxed: the next messages that use
// the counter belong to a step that is admitted after this one has ended, or
// come from a chain that starts after this handle.

/// A mailbox's counter for one step, in one word: the number of missing
/// messages and, in the high bits, the step's round (its number divided by the
/// number of counters, modulo 256). The round lets an observer distinguish a
/// mailbox that has received no message from one that has opened and is armed
/// for a later step. It also reveals a message of a wrong step.
struct mailbox_count {
  static constexpr std::uint32_t round_shift = 24;
  static constexpr std::uint32_t one_round = 1u << round_shift;
  static constexpr std::uint32_t messages_mask = one_round - 1;

  static std::uint32_t messages(std::uint32_t word) noexcept {
    return word & messages_mask;
  }
  static std::uint8_t round(std::uint32_t word) noexcept {
    return static_cast<std::uint8_t>(word >> round_shift);
  }
};

using mailbox_counter = std::atomic<std::uint32_t>;

/// The receiver of a message, by number: an op's mailbox, a variable's mailbox,
/// or a port.
class target {
public:
  enum class kind : std::uint32_t { op, variable, port };

  target() = default;
  target(kind k, std::uint32_t number)
    : word_(static_cast<std::uint32_t>(k) << kind_shift | number) {}
  static target from_word(std::uint32_t word) noexcept {
    target t;
    t.word_ = word;
    return t;
  }

  kind what() const noexcept { return kind{word_ >> kind_shift}; }
  std::uint32_t number() const noexcept { return word_ & number_mask; }
  std::uint32_t word() const noexcept { return word_; }
  friend bool operator==(target, target) = default;

private:
  static constexpr std::uint32_t kind_shift = 30;
  static constexpr std::uint32_t number_mask = (1u << kind_shift) - 1;

  std::uint32_t word_ = 0;
};

/// An op's mailbox. Its counters follow it in memory; with up to four, that is
/// at most a cache line.
class op_mailbox final : public ready_op {
public:
  void run(worker& on) override;
  const graph::op_handle* op() const noexcept override;
  void fail_step(error reason) override;

  op_task* task = nullptr;
  engine_stream* stream = nullptr;
  /// The step for which the op is ready or running; otherwise null. Relaxed:
  /// messages order the op's own thread and the thread that opens the mailbox,
  /// and all others only observe.
  std::atomic<step_state*> step{nullptr};
  std::uint32_t lists = 0;         ///< where its lists begin, see engine.hpp
  std::uint32_t expected : 24 = 0; ///< messages per step
  /// one serial stream sends all messages
  std::uint32_t counts_plainly : 1 = 0;
  std::uint32_t may_be_pending : 1 = 0; ///< see pending_launch.hpp
};

/// A variable's mailbox. It contains its receivers; if there are many, they are
/// in the engine's lists. Its counters follow it in memory.
struct variable_mailbox {
  static constexpr std::uint32_t most_told_here = 3;

  std::uint32_t expected : 24 = 0; ///< messages per step
  std::uint32_t counts_plainly : 1 = 0;
  /// the end of a step, or of a stream's part of a step
  std::uint32_t is_end : 1 = 0;
  /// Number of targets stored here, all of the same step, or `in_lists`.
  std::uint32_t told_here : 6 = 0;
  union {
    std::array<std::uint32_t, most_told_here> told; ///< words of targets
    std::uint32_t lists; ///< where its lists begin, see engine.hpp
  };
  /// no target is stored here
  static constexpr std::uint32_t in_lists = most_told_here + 1;

  variable_mailbox() : told{} {}
};

/// A temporary that is released by several ops, or by an op of a later step.
/// Its counters follow it in memory, one per slot: the number of users that are
/// not done. They count like mailboxes. A decrement is acq_rel, because the
/// last user frees memory that the others have read. A user that reads one
/// (acquire) is the last and need not decrement. If one serial stream runs all
/// users, they count with plain loads and stores.
struct shared_release {
  std::uint32_t temporary = 0;
  std::uint32_t users : 31 = 0;
  std::uint32_t counts_plainly : 1 = 0;
};

inline constexpr std::size_t cache_line = 64;
static_assert(sizeof(op_mailbox) == 48);
static_assert(sizeof(variable_mailbox) == 16);

/// Contiguous mailboxes, each followed by its counters, in units of `unit`
/// bytes. A mailbox is identified by the number of its first unit.
template <class Mailbox>
class mailbox_array {
public:
  mailbox_array() = default;
  /// @param counters per mailbox
  mailbox_array(std::size_t count, std::uint32_t counters)
    : units_each_(
      (sizeof(Mailbox) + counters * sizeof(mailbox_counter) + unit - 1) / unit),
      index_per_unit_(std::numeric_limits<std::uint64_t>::max() / units_each_
                      + 1),
      memory_(static_cast<std::byte*>(::operator new (
        (count + ahead) * units_each_ * unit, std::align_val_t{cache_line}))) {
    for (std::size_t i = 0; i < count + ahead; ++i) {
      auto* m = new (memory_.get() + i * units_each_ * unit) Mailbox;
      auto* counter = reinterpret_cast<std::byte*>(m + 1);
      for (std::uint32_t c = 0; c < counters; ++c)
        new (counter + c * sizeof(mailbox_counter)) mailbox_counter{0};
    }
  }

  std::uint32_t number_of(std::size_t index) const noexcept {
    return static_cast<std::uint32_t>(index * units_each_);
  }
  /// `number / units_each_`, by a multiplication, because each recorded message
  /// needs two of them: exact for all numbers of 32 bits (Lemire, Kaser, Kurz:
  /// "Faster remainder by direct computation", 2019, section 3).
  std::size_t index_of(std::uint32_t number) const noexcept {
    __extension__ using wide = unsigned __int128;
    return static_cast<std::size_t>(wide{index_per_unit_} * number >> 64);
  }
  std::size_t index_of(const Mailbox& m) const noexcept {
    const auto bytes = static_cast<std::size_t>(
      reinterpret_cast<const std::byte*>(&m) - memory_.get());
    return index_of(static_cast<std::uint32_t>(bytes / unit));
  }
  Mailbox& at(std::uint32_t number) const noexcept {
    return *std::launder(
      reinterpret_cast<Mailbox*>(memory_.get() + number * unit));
  }
  /// The mailbox `ahead` positions after `m`, or an unused one.
  const Mailbox& upcoming(const Mailbox& m) const noexcept {
    return *std::launder(reinterpret_cast<const Mailbox*>(
      reinterpret_cast<const std::byte*>(&m) + ahead * units_each_ * unit));
  }
  /// The address of the mailbox `count` positions after `m`, for a prefetch. It
  /// may lie behind the last mailbox.
  const void* address_after(const Mailbox& m,
                            std::size_t count) const noexcept {
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(&m)
                                         + count * units_each_ * unit);
  }
  static mailbox_counter& counter(const Mailbox& m, std::uint32_t which) {
    auto* behind = const_cast<Mailbox*>(&m) + 1;
    return std::launder(reinterpret_cast<mailbox_counter*>(behind))[which];
  }

private:
  struct free_memory {
    void operator()(std::byte* memory) const noexcept {
      ::operator delete (memory, std::align_val_t{cache_line});
    }
  };

  /// As dense as the alignment allows: fewer cache lines are read than if each
  /// mailbox began on a line of its own.
  static constexpr std::size_t unit = alignof(Mailbox);
  /// Prefetch distance of `upcoming`: data is fetched while this many ops run.
  static constexpr std::size_t ahead = 4;

  static_assert(sizeof(Mailbox) > unit); // `index_per_unit_` is below 2^64

  std::size_t units_each_ = 1;
  std::uint64_t index_per_unit_ = 0; // 2^64 / units_each_, rounded up
  // mailboxes need no destructor
  std::unique_ptr<std::byte, free_memory> memory_;
};

using op_mailboxes = mailbox_array<op_mailbox>;
using variable_mailboxes = mailbox_array<variable_mailbox>;
using shared_releases = mailbox_array<shared_release>;

} // namespace troupe::actors
