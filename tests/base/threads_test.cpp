// SPDX-License-Identifier: Apache-2.0
#include <troupe/base/error.hpp>
#include <troupe/base/threads.hpp>

#include <support/caught.hpp>
#include <support/child_process.hpp>
#include <support/files.hpp>
#include <support/skip_case.hpp>

#include <doctest/doctest.h>
#include <sys/types.h>

#include <array>
#include <cerrno>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>

#include <pthread.h>

using namespace troupe;
using namespace troupe::test;

TEST_SUITE("base.threads") {
namespace {

/// Runs `act` in a process that may have `threads` threads; its exit code.
int with_threads(rlim_t threads, const std::function<void()>& act) {
  return exit_code(in_child([&] {
    allow_threads(threads);
    act();
  }));
}

/// Null if a process here can be given few threads.
const char* reason_to_skip() {
#ifdef __SANITIZE_THREAD__
  return "ThreadSanitizer has a thread of its own";
#else
  return ::getuid() == 0
           ? nullptr
           : "needs root, which can become a user without processes";
#endif
}

void require(bool holds, const char* what) {
  if (!holds)
    throw std::runtime_error(what);
}

} // namespace

TEST_CASE("as many threads as required exist at once, and leave no trace") {
  if (const auto* reason = reason_to_skip())
    return skip_case(reason);
  CHECK(with_threads(4,
                     [] {
                       for (int times = 0; times < 1000; ++times)
                         require_threads(3);
                     })
        == 0);
}

TEST_CASE("threads that the system refuses are an error that names limits") {
  if (const auto* reason = reason_to_skip())
    return skip_case(reason);
  CHECK(with_threads(
          4,
          [] {
            require(try_threads(4) == EAGAIN, "four threads started");
            const auto failure = caught([] { require_threads(4); });
            require(failure.code() == errc::kernel_failure
                      && contains(failure.message(), "cannot start 4 threads: ")
                      && contains(failure.message(), "ulimit -u"),
                    failure.what());
            require_threads(3);
          })
        == 0);
  CHECK(with_threads(1,
                     [] {
                       const auto failure =
                         caught([] { start_thread("test", [] {}).join(); });
                       require(
                         contains(failure.message(), "cannot start a thread: "),
                         failure.what());
                     })
        == 0);
}

TEST_CASE("a thread that starts runs its function") {
  int ran = 0;
  start_thread(
    "test", [&ran](int value) { ran = value; }, 3)
    .join();
  CHECK(ran == 3);
}

/// The name of a thread that waits until it was asked for.
std::string name_as_started(const char* name) {
  std::promise<void> was_read;
  auto thread = start_thread(name, [&] { was_read.get_future().wait(); });
  std::array<char, 16> text{};
  ::pthread_getname_np(thread.native_handle(), text.data(), text.size());
  was_read.set_value();
  thread.join();
  return text.data();
}

TEST_CASE("a thread has its name, cut where the system's limit is") {
  CHECK(name_as_started("short") == "short");
  CHECK(name_as_started("fifteen letters") == "fifteen letters");
  CHECK(name_as_started("sixteen letters!") == "sixteen letters");
}
} // TEST_SUITE("base.threads")
