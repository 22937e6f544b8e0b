// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/stacks/signal_stack.hpp>
#include <troupe/base/stacks/thread_stacks.hpp>
#include <troupe/base/threads.hpp>

#include <support/skip_case.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <sys/types.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("base.signal_stack") {

namespace {

/// Waits until `go` is not 0, with the stack pointer at `top`, as generated
/// code that has another use for it.
[[gnu::noinline]] void
wait_elsewhere([[maybe_unused]] unsigned char* top,
               [[maybe_unused]] std::atomic<std::uint32_t>& go) {
#if defined(__x86_64__)
  asm volatile("movq %%rsp, %%rbx\n"
               "movq %0, %%rsp\n"
               "1: pause\n"
               "cmpl $0, (%1)\n"
               "je 1b\n"
               "movq %%rbx, %%rsp\n"
               :
               : "r"(top), "r"(&go)
               : "rbx", "memory", "cc");
#endif
}

} // namespace

TEST_CASE("a thread has a stack for signals, and keeps one that it had") {
  std::thread{[] {
    stack_t before = {}, first = {}, second = {};
    ::sigaltstack(nullptr, &before);
    CHECK(have_signal_stack());
    ::sigaltstack(nullptr, &first);
    CHECK((first.ss_flags & SS_DISABLE) == 0);
    if ((before.ss_flags & SS_DISABLE) == 0) // a sanitizer's
      CHECK(first.ss_sp == before.ss_sp);
    CHECK(have_signal_stack());
    ::sigaltstack(nullptr, &second);
    CHECK(first.ss_sp == second.ss_sp);
  }}.join();
}

TEST_CASE("what lies where the stack pointer points stays as it was") {
#if defined(__SANITIZE_THREAD__)
  return skip_case("ThreadSanitizer keeps signals back until a call");
#elif !defined(__x86_64__)
  return skip_case("needs an x86-64 processor");
#endif
  thread_stacks stacks{SIGRTMIN};
  constexpr std::size_t size = std::size_t{256} * 1024;
  std::vector<unsigned char> data(size, 7);
  // This loop has unwind information, which generated code has not. The
  // unwinder looks above the stack pointer, and ends at a return address of 0.
  data.resize(size + 1024, 0);
  std::atomic<pid_t> number{0};
  std::atomic<std::uint32_t> go{0};
  std::thread computes{[&] {
    CHECK(have_signal_stack());
    number = this_thread_number();
    number.notify_all();
    wait_elsewhere(data.data() + size, go);
  }};
  number.wait(0);
  // Until it is there: in the loop, its stack has the one frame of it.
  thread_stack taken;
  int times = 0;
  while (times < 100) {
    REQUIRE(stacks.take(number, std::chrono::seconds{60}, taken)
            == stack_answer::taken);
    times += taken.count > 0 ? 1 : 0;
  }
  go = 1;
  computes.join();
  CHECK(std::ranges::count(data, 7) == std::ptrdiff_t{size});
}

} // TEST_SUITE("base.signal_stack")
