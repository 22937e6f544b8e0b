// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/base/stacks/code_places.hpp>
#include <troupe/base/stacks/thread_stacks.hpp>
#include <troupe/base/threads.hpp>

#include <support/caught.hpp>
#include <support/child_process.hpp>
#include <support/skip_case.hpp>
#include <support/sleeping_threads.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("base.thread_stacks") {

namespace {

constexpr std::chrono::seconds patience{60};
constexpr std::chrono::milliseconds little_patience{20};

/// A thread that does something and then waits, until the object ends. Unless
/// it blocks the signal, the constructor returns once it waits.
class waiting_thread {
public:
  using function = void (*)(waiting_thread&);

  explicit waiting_thread(function act, bool blocks = false)
    : thread_([this, act, blocks] {
        if (blocks)
          block(SIG_BLOCK);
        act(*this);
      }) {
    number_.wait(0);
    // ThreadSanitizer would keep back a signal that comes before the wait.
    while (!blocks && !is_asleep(number_))
      std::this_thread::yield();
  }
  ~waiting_thread() { end(); }
  waiting_thread(const waiting_thread&) = delete;
  waiting_thread& operator=(const waiting_thread&) = delete;

  void end() {
    let_go();
    if (thread_.joinable())
      thread_.join();
  }
  void let_go() {
    std::lock_guard guard{mutex_};
    may_go_ = true;
    changed_.notify_all();
  }
  pid_t number() const { return number_; }

  // On the thread itself.
  void tell() {
    number_ = this_thread_number();
    number_.notify_all();
  }
  // Not by an atomic: ThreadSanitizer does not see that wait, and keeps signals
  // back meanwhile.
  void wait() {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [this] { return may_go_; });
  }
  static void block(int how) {
    sigset_t one{};
    sigemptyset(&one);
    sigaddset(&one, SIGRTMIN);
    pthread_sigmask(how, &one, nullptr);
  }

private:
  std::atomic<pid_t> number_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool may_go_ = false;
  std::thread thread_; // uses all members above
};

// Each does something after its wait, so that the wait is a call.
[[gnu::noinline]] void waits_in_first(waiting_thread& here) {
  here.tell();
  here.wait();
  here.tell();
}
[[gnu::noinline]] void waits_in_second(waiting_thread& here) {
  here.tell();
  here.wait();
  here.tell();
}
bool has(const thread_stack& stack, const std::string& name) {
  code_places places;
  for (auto address : stack.frames())
    if (places.at(address - 1).symbol.find(name) != std::string::npos)
      return true;
  return false;
}

std::string text_of(const thread_stack& stack) {
  code_places places;
  std::string text;
  for (auto address : stack.frames())
    text += to_string(places.at(address)) + "\n";
  return text;
}

bool has_handler(int signal) {
  struct sigaction now = {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler != SIG_DFL;
}

bool is_there(pid_t thread) {
  return std::filesystem::exists("/proc/self/task/" + std::to_string(thread));
}

} // namespace

TEST_CASE("the stack of another thread has the functions that it is in") {
  thread_stacks stacks{SIGRTMIN};
  waiting_thread other{waits_in_first};
  thread_stack stack;
  REQUIRE(stacks.take(other.number(), patience, stack) == stack_answer::taken);
  INFO(text_of(stack));
  CHECK(has(stack, "waits_in_first"));
  CHECK_FALSE(has(stack, "waits_in_second"));
  CHECK_FALSE(has(stack, "answer_stack_request")); // nor that of the handler
  CHECK_FALSE(has(stack, "stack_below"));
}

TEST_CASE("a thread can take its own stack") {
#ifdef __SANITIZE_THREAD__
  return skip_case("ThreadSanitizer handles the signal only after the call");
#endif
  thread_stacks stacks{SIGRTMIN};
  thread_stack stack;
  REQUIRE(stacks.take(this_thread_number(), patience, stack)
          == stack_answer::taken);
  INFO(text_of(stack));
  CHECK(has(stack, "thread_stacks::take"));
}

TEST_CASE("a thread that does not want to leaves its stack untold") {
  thread_stacks stacks{SIGRTMIN};
  waiting_thread other{waits_in_first};
  struct seen {
    pid_t asked = 0;
    bool wants = false;
  } s;
  const stack_question question{[](void* context) noexcept {
                                  auto& to = *static_cast<seen*>(context);
                                  to.asked = static_cast<pid_t>(::gettid());
                                  return to.wants;
                                },
                                &s};
  thread_stack stack;
  CHECK(stacks.take(other.number(), patience, stack, question)
        == stack_answer::declined);
  CHECK(s.asked == other.number()); // it was asked itself
  CHECK(stack.frames().empty());
  s.wants = true;
  CHECK(stacks.take(other.number(), patience, stack, question)
        == stack_answer::taken);
  CHECK(has(stack, "waits_in_first"));
}

TEST_CASE("a sleep is not shorter because the sleeping thread is asked") {
  thread_stacks stacks{SIGRTMIN};
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds wanted{20};
  std::atomic<bool> is_over{false};
  std::atomic<pid_t> number{0};
  int too_short = 0;
  std::thread sleeper{[&] {
    number = this_thread_number();
    number.notify_all();
    while (!is_over) {
      const auto begin = clock::now();
      std::this_thread::sleep_for(wanted);
      too_short += clock::now() - begin < wanted;
    }
  }};
  number.wait(0);
  thread_stack stack;
  int taken = 0;
  // Not more often: what is left of a sleep does not count while it is asked.
  for (int i = 0; i < 20; ++i)
    taken += stacks.take(number, patience, stack) == stack_answer::taken;
  is_over = true;
  sleeper.join();
  CHECK(taken == 20);
  CHECK(too_short == 0);
}

TEST_CASE("an answer that comes too late is nobody's") {
  thread_stacks stacks{SIGRTMIN};
  waiting_thread other{[](waiting_thread& here) {
                         waits_in_first(here); // the signal is blocked
                         waiting_thread::block(SIG_UNBLOCK);
                       },
                       true};
  waiting_thread third{waits_in_second};
  thread_stack stack;
  CHECK(stacks.take(other.number(), little_patience, stack)
        == stack_answer::none);
  CHECK(stack.frames().empty());
  other.let_go(); // handles the signal of the first request
  CHECK(stacks.take(third.number(), patience, stack) == stack_answer::taken);
  CHECK(has(stack, "waits_in_second"));
}

TEST_CASE("a thread that blocked the signal answers the next request") {
  thread_stacks stacks{SIGRTMIN};
  std::atomic<bool> may_end{false};
  std::atomic<pid_t> number{0};
  std::atomic<bool> may_unblock{false};
  std::thread other{[&] {
    waiting_thread::block(SIG_BLOCK);
    number = this_thread_number();
    number.notify_all();
    may_unblock.wait(false);
    waiting_thread::block(SIG_UNBLOCK);
    may_end.wait(false);
  }};
  number.wait(0);
  thread_stack stack;
  CHECK(stacks.take(number, little_patience, stack) == stack_answer::none);
  may_unblock = true;
  may_unblock.notify_all();
  CHECK(stacks.take(number, patience, stack) == stack_answer::taken);
  may_end = true;
  may_end.notify_all();
  other.join();
  CHECK_FALSE(stack.frames().empty());
}

TEST_CASE("a thread that has ended is told from one that does not answer") {
  thread_stacks stacks{SIGRTMIN};
  pid_t number = 0;
  {
    waiting_thread other{waits_in_first};
    number = other.number();
  }
  while (is_there(number)) // a joined thread goes on for some microseconds
    std::this_thread::yield();
  thread_stack stack;
  CHECK(stacks.take(number, patience, stack) == stack_answer::ended);
}

TEST_CASE("a thread that ends while it is asked is not waited for") {
  std::optional<thread_stacks> stacks{std::in_place, SIGRTMIN};
  // Ends when the request has come, without answering it.
  waiting_thread other{[](waiting_thread& here) {
                         here.tell();
                         sigset_t pending{};
                         while (sigismember(&pending, SIGRTMIN) != 1)
                           sigpending(&pending);
                       },
                       true};
  thread_stack stack;
  CHECK(stacks->take(other.number(), std::chrono::hours{1}, stack)
        == stack_answer::ended);
  // Nobody can get the signal any more, so the handler goes, too.
  stacks.reset();
#ifndef __SANITIZE_THREAD__ // drops signals that ending threads have got
  CHECK_FALSE(has_handler(SIGRTMIN));
#endif
}

TEST_CASE("several threads can ask at the same time") {
  thread_stacks stacks{SIGRTMIN};
  waiting_thread first{waits_in_first};
  waiting_thread second{waits_in_second};
  const auto asks = [&](const waiting_thread& of, const std::string& name,
                        int& right) {
    for (int i = 0; i < 100; ++i) {
      thread_stack stack;
      right += stacks.take(of.number(), patience, stack) == stack_answer::taken
               && has(stack, name);
    }
  };
  int right_first = 0, right_second = 0;
  std::thread asking{[&] { asks(first, "waits_in_first", right_first); }};
  asks(second, "waits_in_second", right_second);
  asking.join();
  CHECK(right_first == 100);
  CHECK(right_second == 100);
}

TEST_CASE("the signal of somebody else takes no stack and harms nothing") {
  thread_stacks stacks{SIGRTMIN};
  waiting_thread other{waits_in_first};
  CHECK(::syscall(SYS_tgkill, ::getpid(), other.number(), SIGRTMIN) == 0);
  sigval value{};
  value.sival_ptr = &value;
  CHECK(::sigqueue(::getpid(), SIGRTMIN, value) == 0);
  thread_stack stack;
  CHECK(stacks.take(other.number(), patience, stack) == stack_answer::taken);
}

TEST_CASE("a signal that others use, and no real-time signal, are refused") {
  struct sigaction before = {};
  sigaction(SIGRTMIN + 1, nullptr, &before);
  std::signal(SIGRTMIN + 1, [](int) {});
  CHECK(says(caught([] { thread_stacks{SIGRTMIN + 1}; }), "is used already"));
  sigaction(SIGRTMIN + 1, &before, nullptr);
  CHECK(says(caught([] { thread_stacks{SIGUSR1}; }), "no real-time signal"));
  const thread_stacks one{SIGRTMIN};
  CHECK(says(caught([] { thread_stacks{SIGRTMIN + 2}; }),
             "the process takes call stacks already"));
}

TEST_CASE("the signal does what it did before when the object is gone") {
#ifdef __SANITIZE_THREAD__
  return skip_case("ThreadSanitizer drops signals that ending threads have "
                   "got, and for these the handler stays");
#endif
  { const thread_stacks stacks{SIGRTMIN + 3}; }
  CHECK_FALSE(has_handler(SIGRTMIN + 3));
  const thread_stacks again{SIGRTMIN + 3};
}

TEST_CASE("an answer that comes after the object is gone does not end the "
          "process") {
  const auto child = in_child([] {
    std::atomic<bool> may_unblock{false};
    std::atomic<pid_t> number{0};
    std::thread other{[&] {
      waiting_thread::block(SIG_BLOCK);
      number = this_thread_number();
      number.notify_all();
      may_unblock.wait(false);
      waiting_thread::block(SIG_UNBLOCK);
    }};
    number.wait(0);
    {
      thread_stacks stacks{SIGRTMIN};
      thread_stack stack;
      if (stacks.take(number, little_patience, stack) != stack_answer::none)
        throw std::runtime_error("an answer of a thread that blocks signals");
    }
    may_unblock = true;
    may_unblock.notify_all();
    other.join();
  });
  CHECK(exit_code(child) == 0);
}

TEST_CASE("the system says that a waiting thread sleeps") {
  waiting_thread other{waits_in_first};
  const auto text = thread_state(other.number());
  CHECK(!text.empty());
  CHECK(thread_state(0).empty());
}

} // TEST_SUITE("base.thread_stacks")
