// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/ready_op.hpp>
#include <troupe/base/ids.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace troupe::actors {

class op_task;
struct engine_stream;
struct step_state;

// An op or variable handle while its graph runs is a counting mailbox.
//
// Per step in flight it counts the messages still to come. Who sends the last
// one arms the counter for the step that uses it next and opens the mailbox: a
// variable tells its readers, an op goes to its stream. Nobody queues, locks or
// allocates.
//
// Memory order. A decrement is acq_rel: its release half publishes what the
// sender wrote; its acquire half, on the last decrement, takes in what all
// senders wrote, since the decrements of one counter form a release sequence.
// Who reads a count of one, acquire, is the only sender left and has seen all
// others: it need not decrement, so a chain runs without a locked instruction.
// If one serial stream sends all messages, plain loads and stores count: the
// stream's inbox orders its drains on different workers. An op goes to another
// worker through a stream's inbox or the job queue, which order it again.
// Arming is relaxed: the next messages that use the counter belong to a step
// that is admitted after this one has ended, or come from a chain that begins
// behind this handle.

/// What a mailbox counts for one step, in one word: the messages still to come,
/// and above them the step's round (its number divided by the number of
/// counters, modulo 256). So an observer can tell a mailbox that nobody has
/// told yet from one that has opened and is armed for a later step, and a
/// message of a wrong step is found.
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

/// Whom a message is for: an op's mailbox, a variable's, or a port, by number.
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

/// An op's mailbox. Its counters lie behind it, on the same cache line if there
/// are at most four.
class op_mailbox final : public ready_op {
public:
  void run(worker& on) override;
  const graph::op_handle* op() const noexcept override;
  void fail_step(error reason) override;

  op_task* task = nullptr;
  engine_stream* stream = nullptr;
  /// The step that the op is ready for or runs; null before and behind that.
  /// Relaxed: the op's own thread and who opens it are ordered by messages;
  /// others only look.
  std::atomic<step_state*> step{nullptr};
  std::uint32_t lists = 0;         ///< where its lists begin, see engine.hpp
  std::uint32_t expected : 24 = 0; ///< messages per step
  std::uint32_t counts_plainly : 1 = 0; ///< one serial stream sends them all
  std::uint32_t may_be_pending : 1 = 0; ///< see pending_launch.hpp
};

/// A variable's mailbox, half a cache line: whom it tells stands in it, or in
/// the engine's lists if those are many. Its counters lie behind it.
struct variable_mailbox {
  static constexpr std::uint32_t most_told_here = 3;

  std::uint32_t expected : 24 = 0; ///< messages per step
  std::uint32_t counts_plainly : 1 = 0;
  std::uint32_t is_end : 1 = 0; ///< of a step, or of a stream's part of it
  /// How many targets, all of the same step, stand here, or `in_lists`.
  std::uint32_t told_here : 6 = 0;
  union {
    std::array<std::uint32_t, most_told_here> told; ///< words of targets
    std::uint32_t lists; ///< where its lists begin, see engine.hpp
  };
  static constexpr std::uint32_t in_lists = most_told_here + 1; ///< none does

  variable_mailbox() : told{} {}
};

/// A temporary that several ops give back, or one in a later step. Its counters
/// lie behind it, one per slot: users that are not done. They count as
/// mailboxes do: acq_rel, since the last one frees memory that the others have
/// read; who reads one, acquire, is the last without decrementing; plainly if
/// all are drained by one serial stream.
struct shared_release {
  std::uint32_t temporary = 0;
  std::uint32_t users : 31 = 0;
  std::uint32_t counts_plainly : 1 = 0;
};

inline constexpr std::size_t cache_line = 64;
static_assert(sizeof(op_mailbox) == 48);
static_assert(sizeof(variable_mailbox) == 16);

/// Mailboxes one behind the other, each with its counters, in units of `Unit`
/// bytes. A mailbox is known by the number of the unit at which it begins.
template <class Mailbox, std::size_t Unit>
class mailbox_array {
public:
  mailbox_array() = default;
  /// @param counters per mailbox
  mailbox_array(std::size_t count, std::uint32_t counters)
    : units_each_(
      (sizeof(Mailbox) + counters * sizeof(mailbox_counter) + Unit - 1) / Unit),
      memory_(static_cast<std::byte*>(::operator new (
        (count + ahead) * units_each_ * Unit, std::align_val_t{cache_line}))) {
    for (std::size_t i = 0; i < count + ahead; ++i) {
      auto* m = new (memory_.get() + i * units_each_ * Unit) Mailbox;
      auto* counter = reinterpret_cast<std::byte*>(m + 1);
      for (std::uint32_t c = 0; c < counters; ++c)
        new (counter + c * sizeof(mailbox_counter)) mailbox_counter{0};
    }
  }

  std::uint32_t number_of(std::size_t index) const noexcept {
    return static_cast<std::uint32_t>(index * units_each_);
  }
  std::size_t index_of(std::uint32_t number) const noexcept {
    return number / units_each_;
  }
  std::size_t index_of(const Mailbox& m) const noexcept {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&m)
                                    - memory_.get())
           / (units_each_ * Unit);
  }
  Mailbox& at(std::uint32_t number) const noexcept {
    return *std::launder(
      reinterpret_cast<Mailbox*>(memory_.get() + number * Unit));
  }
  /// The mailbox `ahead` behind one, or one that nobody uses.
  const Mailbox& upcoming(const Mailbox& m) const noexcept {
    return *std::launder(reinterpret_cast<const Mailbox*>(
      reinterpret_cast<const std::byte*>(&m) + ahead * units_each_ * Unit));
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

  /// How far `upcoming` looks: what it leads to comes from memory while so many
  /// empty ops run.
  static constexpr std::size_t ahead = 4;

  std::size_t units_each_ = 1;
  std::unique_ptr<std::byte, free_memory> memory_; // mailboxes need no ending
};

using op_mailboxes = mailbox_array<op_mailbox, cache_line>;
using variable_mailboxes = mailbox_array<variable_mailbox, cache_line / 2>;
using shared_releases = mailbox_array<shared_release, cache_line / 4>;

} // namespace troupe::actors
