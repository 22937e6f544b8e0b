// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/threads.hpp>

#include <troupe/base/error.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe {

namespace {

/// A thread that waits for a mutex that its maker holds.
struct held_thread {
  pthread_t handle{};
  pthread_mutex_t* gate = nullptr;
  std::atomic<pid_t> number{0}; // relaxed: read after the join

  static void* run(void* argument) {
    auto& self = *static_cast<held_thread*>(argument);
    self.number.store(static_cast<pid_t>(::syscall(SYS_gettid)),
                      std::memory_order_relaxed);
    ::pthread_mutex_lock(self.gate);
    ::pthread_mutex_unlock(self.gate);
    return nullptr;
  }

  /// Joins the thread and waits until the system has removed it. A joined
  /// thread counts towards limits for some microseconds more.
  void end() noexcept {
    constexpr int most_looks = 100'000;
    ::pthread_join(handle, nullptr);
    const auto id = number.load(std::memory_order_relaxed);
    for (int looks = 0;
         looks < most_looks && ::syscall(SYS_tgkill, ::getpid(), id, 0) == 0;
         ++looks)
      ::sched_yield();
  }
};

constinit thread_local pid_t number_here = 0;

/// Of the calling thread, whose child after a fork has another number.
void note_number_here() {
  static const int forgets_in_child =
    ::pthread_atfork(nullptr, nullptr, [] { number_here = 0; });
  if (forgets_in_child == 0) // else it is asked for each time
    number_here = static_cast<pid_t>(::syscall(SYS_gettid));
}

} // namespace

pid_t this_thread_number() noexcept {
  if (number_here == 0)
    note_number_here();
  return number_here != 0 ? number_here
                          : static_cast<pid_t>(::syscall(SYS_gettid));
}

int try_threads(std::size_t count) noexcept {
  const std::unique_ptr<held_thread[]> held{new (std::nothrow)
                                              held_thread[count]};
  if (!held)
    return ENOMEM;
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  ::pthread_mutex_lock(&gate);
  std::size_t started = 0;
  int code = 0;
  while (code == 0 && started < count) {
    auto& next = held[started];
    next.gate = &gate;
    code = ::pthread_create(&next.handle, nullptr, held_thread::run, &next);
    if (code == 0)
      ++started;
  }
  ::pthread_mutex_unlock(&gate);
  for (std::size_t i = 0; i < started; ++i)
    held[i].end();
  return code;
}

void require_threads(std::size_t count) {
  if (const int code = try_threads(count); code != 0)
    fail_to_start_threads(count, code);
}

void name_thread(std::thread::native_handle_type thread,
                 const char* name) noexcept {
  // The system's limit, with the zero at the end. It refuses longer names.
  std::array<char, 16> text{};
  std::strncpy(text.data(), name, text.size() - 1);
  // A thread that has ended already has no name, and needs none.
  ::pthread_setname_np(thread, text.data());
}

void fail_to_start_threads(std::size_t count, int code) {
  throw error(errc::kernel_failure,
              "cannot start "
                + (count == 1 ? "a thread" : std::to_string(count) + " threads")
                + ": " + std::strerror(code)
                + " (limits: ulimit -u, the pids limit of a container; of "
                  "memory for stacks: ulimit -v, ulimit -d)");
}

} // namespace troupe
