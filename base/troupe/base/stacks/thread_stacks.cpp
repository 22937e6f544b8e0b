// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/stacks/thread_stacks.hpp>

#include <troupe/base/error.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fstream>
#include <string_view>

#include <execinfo.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace troupe {

namespace {

enum phase : std::uint64_t {
  idle,    ///< nobody asks
  asked,   ///< the thread that is asked has not come yet
  writing, ///< that thread writes its answer
  written,
};
constexpr std::uint64_t one_request = 4; // above the phases

constexpr std::uint64_t phase_of(std::uint64_t state) {
  return state % one_request;
}

/// The request of the moment. A signal handler can access only globals, and a
/// late answer must find something: so it is never destroyed.
///
/// `state` is a number that grows with each request, and the phase. Release and
/// acquire: `asked` publishes who is asked what, `written` publishes the
/// answer. A thread must change `asked` to `writing` before it reads `question`
/// or writes `stack`, and the asking one must change `asked` to `idle` before
/// it gives up. So only one of them does, and a thread that comes late, in a
/// later request, fails to.
struct stack_request {
  std::atomic<std::uint64_t> state{idle};
  std::atomic<pid_t> thread{0}; // relaxed: `state` publishes it
  stack_question question;
  bool is_taken = false;
  thread_stack stack;
  sem_t is_written; // posted once per request that gets to `writing`
  // Signals that have been sent and not handled. Relaxed: a count. That of a
  // thread that was given up, and then ends without having handled it, stays.
  std::atomic<int> under_way{0};
};
constinit stack_request request{};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<pid_t>::is_always_lock_free);

constinit std::atomic<bool> has_owner{false}; // acq_rel: one owner at a time

/// Asks the system: a handler must not use what `this_thread_number` keeps.
pid_t calling_thread() noexcept {
  return static_cast<pid_t>(::syscall(SYS_gettid));
}

/// Where the thread was when the signal came; 0: unknown.
std::uintptr_t interrupted_at(const void* context) noexcept {
  [[maybe_unused]] const auto& machine =
    static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(machine.pc);
#else
  return 0;
#endif
}

/// The stack of the calling thread below its signal handler.
thread_stack stack_below(const void* context) noexcept {
  constexpr int of_handler = 8; // frames, more than it has
  constexpr int most = of_handler + int{thread_stack::most_frames};
  std::array<void*, most> found{};
  const auto count = static_cast<std::size_t>(::backtrace(found.data(), most));
  const auto all = std::span{found}.first(count);
  const auto at = interrupted_at(context);
  const auto first = std::ranges::find(all, at, [](void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
  });
  thread_stack made;
  if (first == all.end() && at != 0) { // the unwinder does not get there
    made.addresses[made.count++] = at;
    return made;
  }
  for (auto i = first == all.end() ? all.begin() : first;
       i != all.end() && made.count < thread_stack::most_frames; ++i)
    made.addresses[made.count++] = reinterpret_cast<std::uintptr_t>(*i);
  return made;
}

void answer(const void* context) noexcept {
  auto& r = request;
  auto seen = r.state.load(std::memory_order_acquire);
  if (phase_of(seen) != asked
      || r.thread.load(std::memory_order_relaxed) != calling_thread())
    return;
  // Before the claim: it can take long, and the asking thread must be able to
  // give up meanwhile. After it, this thread only copies.
  const auto stack = stack_below(context);
  if (!r.state.compare_exchange_strong(seen, seen - asked + writing,
                                       std::memory_order_acq_rel,
                                       std::memory_order_relaxed))
    return;
  const auto& q = r.question;
  r.is_taken = !q.holds_for || q.holds_for(q.context);
  if (r.is_taken)
    r.stack = stack;
  r.state.store(seen - asked + written, std::memory_order_release);
  ::sem_post(&r.is_written);
}

extern "C" void answer_stack_request(int, siginfo_t* info, void* context) {
  const int error_number = errno;
  // Others can send the signal, too.
  if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == &request) {
    request.under_way.fetch_sub(1, std::memory_order_relaxed);
    answer(context);
  }
  errno = error_number;
}

bool is_own(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0
         && action.sa_sigaction == answer_stack_request;
}

void install(int signal) {
  struct sigaction action = {};
  action.sa_sigaction = answer_stack_request;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&action.sa_mask); // another handler would be in the stack
  sigaction(signal, &action, nullptr);
}

int send(pid_t thread, int signal) noexcept {
  siginfo_t info = {};
  info.si_signo = signal;
  info.si_code = SI_QUEUE; // is queued, so no signal stands for two requests
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_ptr = &request;
  return ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread, signal, &info)
             == 0
           ? 0
           : errno;
}

timespec timespec_of(std::chrono::steady_clock::time_point time) noexcept {
  using namespace std::chrono;
  const auto since = time.time_since_epoch();
  const auto whole = duration_cast<seconds>(since);
  return {static_cast<time_t>(whole.count()),
          static_cast<long>(nanoseconds{since - whole}.count())};
}

bool is_there(pid_t thread) noexcept {
  return ::syscall(SYS_tgkill, ::getpid(), thread, 0) == 0;
}

/// False if the answer has not come until then.
bool wait_until(std::chrono::steady_clock::time_point end) noexcept {
  const auto until = timespec_of(end);
  while (::sem_clockwait(&request.is_written, CLOCK_MONOTONIC, &until) != 0)
    if (errno != EINTR)
      return false;
  return true;
}

/// The same, or that the thread has ended: its signal ends with it.
bool wait_for(pid_t thread, std::chrono::milliseconds patience) noexcept {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds between_looks{10};
  const auto end = clock::now() + patience;
  do
    if (wait_until(std::min(end, clock::now() + between_looks)))
      return true;
  while (clock::now() < end && is_there(thread));
  return false;
}

} // namespace

thread_stacks::thread_stacks(int signal, std::chrono::milliseconds patience)
  : signal_(signal), patience_(patience) {
  if (signal < SIGRTMIN || signal > SIGRTMAX)
    throw error(errc::invalid_argument,
                "signal " + std::to_string(signal)
                  + " cannot ask for call stacks: it is no real-time signal");
  struct sigaction before = {};
  sigaction(signal, nullptr, &before);
  if (!is_own(before) && before.sa_handler != SIG_DFL)
    throw error(errc::invalid_argument,
                "signal " + std::to_string(signal)
                  + " cannot ask for call stacks: it is used already");
  if (has_owner.exchange(true, std::memory_order_acq_rel))
    throw error(errc::invalid_argument,
                "the process takes call stacks already");
  void* one = nullptr;
  ::backtrace(&one, 1); // the first call loads a library, which allocates
  ::sem_init(&request.is_written, 0, 0);
  install(signal);
}

thread_stacks::~thread_stacks() {
  if (request.under_way.load(std::memory_order_relaxed) == 0)
    std::signal(signal_, SIG_DFL);
  has_owner.store(false, std::memory_order_release);
}

stack_answer thread_stacks::take(pid_t thread,
                                 std::chrono::milliseconds patience,
                                 thread_stack& stack,
                                 stack_question first) noexcept {
  std::lock_guard guard{mutex_};
  auto& r = request;
  // Only this thread changes the number and, while the phase is `idle` or
  // `written`, the rest.
  const auto last = r.state.load(std::memory_order_relaxed);
  const auto number = last - phase_of(last) + one_request;
  r.thread.store(thread, std::memory_order_relaxed);
  r.question = first;
  r.state.store(number + asked, std::memory_order_release);
  r.under_way.fetch_add(1, std::memory_order_relaxed);
  if (const int code = send(thread, signal_); code != 0) {
    r.under_way.fetch_sub(1, std::memory_order_relaxed);
    r.state.store(number + idle, std::memory_order_relaxed);
    return code == ESRCH ? stack_answer::ended : stack_answer::not_sent;
  }
  if (!wait_for(thread, patience)) {
    const bool has_ended = !is_there(thread); // before the next line
    auto unanswered = number + asked;
    if (r.state.compare_exchange_strong(unanswered, number + idle,
                                        std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
      if (!has_ended)
        return stack_answer::none;
      // It would have answered, so its signal has ended with it.
      r.under_way.fetch_sub(1, std::memory_order_relaxed);
      return stack_answer::ended;
    }
    // The thread writes, which waits for nobody.
    while (::sem_wait(&r.is_written) != 0)
      ;
  }
  // Acquire: pairs with `written`, in case that the semaphore is not one.
  if (phase_of(r.state.load(std::memory_order_acquire)) != written
      || !r.is_taken)
    return stack_answer::declined;
  stack = r.stack;
  return stack_answer::taken;
}

std::string thread_state(pid_t thread) {
  std::ifstream status{"/proc/self/task/" + std::to_string(thread) + "/status"};
  constexpr std::string_view wanted = "State:\t";
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(wanted))
      return line.substr(wanted.size());
  return {};
}

} // namespace troupe
