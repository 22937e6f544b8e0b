// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>
#include <troupe/comm/communicator.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>

namespace troupe::actors {

/// Makes calls of several ranks between steps, and waits for them.
///
/// Thread rule: one thread; `completed` from any.
class calls_in_flight final : public completion {
public:
  /// Makes a call that is part of it.
  void start(comm::communicator& end, const comm::collective_call& call) {
    {
      std::lock_guard guard{mutex_};
      ++open_;
    }
    try {
      if (end.start(call, *this).state == launch_status::done)
        completed(nullptr);
    } catch (...) {
      completed(std::current_exception());
    }
  }

  void completed(std::exception_ptr failure) noexcept override {
    std::lock_guard guard{mutex_};
    if (failure && !failure_)
      failure_ = failure;
    if (--open_ == 0)
      changed_.notify_all(); // under the lock, because the waiter destroys this
  }

  /// Throws the first failure.
  /// @param check called now and then, if set. If it throws, `give_up` is
  ///   called, which must end the calls, and then the error is thrown.
  void wait(const std::function<void()>& check = {},
            const std::function<void(const error&)>& give_up = {}) {
    constexpr std::chrono::milliseconds between_checks{20};
    std::unique_lock guard{mutex_};
    const auto all_are_over = [this] { return open_ == 0; };
    while (check && !changed_.wait_for(guard, between_checks, all_are_over)) {
      guard.unlock();
      try {
        check();
      } catch (const error& e) {
        give_up(e);
        wait_for_all();
        throw;
      } catch (...) { // no memory
        give_up({errc::out_of_memory, "no memory to wait for other ranks"});
        wait_for_all();
        throw;
      }
      guard.lock();
    }
    changed_.wait(guard, all_are_over);
    if (failure_)
      std::rethrow_exception(failure_);
  }

private:
  void wait_for_all() {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [this] { return open_ == 0; });
  }

  std::mutex mutex_; // guards all others
  std::condition_variable changed_;
  std::size_t open_ = 0;
  std::exception_ptr failure_;
};

} // namespace troupe::actors
