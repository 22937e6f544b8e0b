// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe::model {

/// What shared variables hold; flags, counts, small sets of bits.
using value = std::int8_t;
/// Number of a shared variable; models name theirs by an enum.
using variable = std::uint8_t;

/// How writes reach other threads.
enum class memory : std::uint8_t {
  sequential, ///< at once
  buffered,   ///< x86: from a buffer per thread, in order, at any later time
  weak, ///< from the buffer in any order, but for those of one variable and for
        ///< releases, which come after all before them
};

constexpr std::size_t max_variables = 20;
constexpr std::size_t max_threads = 4;
constexpr std::size_t max_pending = 8; ///< a thread with more waits
constexpr std::size_t writes_per_step = 3;
constexpr std::size_t max_registers = 4;

/// A write that other threads do not see yet.
struct pending_write {
  variable to = 0;
  value what = 0;
  bool release = false;
  bool operator==(const pending_write&) const = default;
};

struct thread_state {
  std::uint8_t step = 0; ///< of its program that comes next
  std::array<value, max_registers> registers{};
  std::uint8_t pending_count = 0;
  std::array<pending_write, max_pending> pending{}; ///< oldest first
  bool operator==(const thread_state&) const = default;
};

/// All that the threads' future depends on.
struct state {
  std::array<value, max_variables> shared{};
  std::array<thread_state, max_threads> threads{};
  bool operator==(const state&) const = default;
};

/// What one step of a thread does to the state. The reads and writes of one
/// step happen together: a step stands for one atomic access, or for several
/// accesses to what only this thread may touch just now.
class memory_access {
public:
  memory_access(state& s, std::size_t thread, memory kind) noexcept
    : state_(s), self_(s.threads[thread]), memory_(kind) {}

  /// The thread's own last write, else what is shared.
  value load(variable from) const noexcept;
  void store(variable to, value what) noexcept { write(to, what, false); }
  void store_release(variable to, value what) noexcept {
    write(to, what, true);
  }
  /// The shared value itself, for read-modify-write steps alone.
  value& shared(variable v) noexcept { return state_.shared[v]; }

  value& local(std::size_t number) noexcept { return self_.registers[number]; }
  /// The step that comes next, if not the following one.
  void go_to(std::uint8_t step) noexcept { self_.step = step; }

private:
  void write(variable to, value what, bool release) noexcept;

  state& state_;
  thread_state& self_;
  memory memory_;
};

/// One step of a program.
struct instruction {
  enum class kind : std::uint8_t {
    plain,   ///< loads and stores
    change,  ///< a read-modify-write of one variable, relaxed or acquire
    release, ///< the same, behind all writes before it
    fence,   ///< does nothing, behind all writes before it
    local,   ///< touches registers alone; done with the step before
  };
  const char* name;
  kind what = kind::plain;
  variable of = 0; ///< what a `change` changes
  std::function<bool(memory_access&)> can =
    {}; ///< blocks until true; empty: never
  std::function<void(memory_access&)> act;
};

using program = std::vector<instruction>;

/// What a program's last step goes to.
constexpr std::uint8_t ended = 255;

/// A few threads and what must hold.
struct machine {
  memory rules = memory::sequential;
  state initial = {};
  std::vector<program> threads;
  /// Holds in every state; null: nothing to hold. Says what is wrong or "".
  std::function<std::string(const state&)> always;
  /// Holds where no thread can go on.
  std::function<std::string(const state&)> at_end;
};

struct outcome {
  std::size_t states = 0;
  std::size_t ends = 0; ///< states in which no thread can go on
  std::string failure;  ///< empty: none; else what is wrong
  std::string trace;    ///< a shortest way to it, a step per line
};

/// Runs all interleavings of the threads' steps and of their delayed writes,
/// and looks whether some way leads from each state to one in which no thread
/// can go on.
/// Acquire and relaxed loads are alike: loads are never early. Where an early
/// load matters, a program with the load before says so.
outcome explore(const machine& m);

} // namespace troupe::model
