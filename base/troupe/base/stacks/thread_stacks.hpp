// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include <sys/types.h>

namespace troupe {

/// The call stack of a thread at one moment.
struct thread_stack {
  static constexpr std::size_t most_frames = 64;

  /// Addresses in the code, the innermost first. The first one is the
  /// instruction that comes next, the others are those to which calls return.
  std::span<const std::uintptr_t> frames() const noexcept {
    return {addresses.data(), count};
  }

  std::array<std::uintptr_t, most_frames> addresses{};
  std::size_t count = 0;
};

/// How a thread that was asked for its stack has answered.
enum class stack_answer : std::uint8_t {
  taken,
  declined, ///< the thread is no longer in what the caller asks about
  ended,    ///< there is no such thread
  none,     ///< the thread has not answered in time
  not_sent, ///< the system has not taken the signal
};

/// What a thread that is asked for its stack is asked first: whether to store
/// it. Called in a signal handler on that thread, and not after
/// `thread_stacks::take` has returned.
struct stack_question {
  bool (*holds_for)(void* context) noexcept = nullptr; ///< null: always
  void* context = nullptr;
};

/// Takes the call stacks of other threads of this process. It owns a real-time
/// signal: a thread that gets it stores its stack. A stack ends at code without
/// unwind information, as code that was generated at run time can be.
///
/// The process belongs to the application, so Troupe's library makes none of
/// these by itself. An application that makes one hands it to its executors
/// (`flight_recorder_options::stacks`).
///
/// A thread that gets the signal goes on with its system call, or with its
/// sleep, if the call is restarted after signals or is made again after EINTR,
/// as those of the C++ library are. The handler runs on the thread's alternate
/// signal stack. A thread that can run generated code must have one
/// (`have_signal_stack`). Otherwise the handler needs 16 KiB of its stack.
///
/// Thread rule: made and destroyed by one thread; `take` from any thread, which
/// waits for others.
class thread_stacks {
public:
  /// Installs the handler. Throws error(invalid_argument) if `signal` is no
  /// real-time signal or has a handler, or if the process has another
  /// `thread_stacks`.
  /// @param signal from SIGRTMIN to SIGRTMAX
  /// @param patience how long executors wait for the answer of a worker. It
  ///   needs some microseconds once it has a core
  explicit thread_stacks(
    int signal, std::chrono::milliseconds patience = std::chrono::seconds{2});
  /// Restores what the signal did before. If a thread has yet to answer, the
  /// handler stays: without it, the signal would end the process.
  ~thread_stacks();
  thread_stacks(const thread_stacks&) = delete;
  thread_stacks& operator=(const thread_stacks&) = delete;

  /// How long executors wait for the answer of a worker.
  std::chrono::milliseconds patience() const noexcept { return patience_; }

  /// Asks a thread for its stack, and waits for the answer. A thread that waits
  /// in the system without taking signals, or that blocks this one, does not
  /// answer. Does not throw.
  /// @param thread as the system numbers it (`this_thread_number`); can be the
  ///   calling one, or one that has ended
  /// @param patience how long to wait
  stack_answer take(pid_t thread, std::chrono::milliseconds patience,
                    thread_stack& stack, stack_question first = {}) noexcept;

private:
  const int signal_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_; // one request at a time
};

/// What the system says of a thread of this process: "D (disk sleep)". Empty if
/// it is unknown. Any thread.
std::string thread_state(pid_t thread);

} // namespace troupe
