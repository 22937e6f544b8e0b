// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <atomic>
#include <string>
#include <string_view>

namespace troupe {

/// Notices a call of an object during another call: by a second thread, or by a
/// function of the application that the first call has called. Without it, such
/// a mistake shows as a hang or as wrong results.
class one_at_a_time {
public:
  /// A call, from its begin to its end.
  class call {
  public:
    /// Throws error(invalid_argument) if another call is under way.
    /// @param what of the object, for the error: "the executor"
    call(one_at_a_time& of, std::string_view what) : of_(of) {
      // acquire and release: who calls next sees what the last call has done
      if (of_.is_under_way_.exchange(true, std::memory_order_acquire))
        throw error(errc::invalid_argument,
                    std::string{what}
                      + " is in use: another thread, or a function that it "
                        "calls, calls it at the same time");
    }
    ~call() { of_.is_under_way_.store(false, std::memory_order_release); }
    call(const call&) = delete;
    call& operator=(const call&) = delete;

  private:
    one_at_a_time& of_;
  };

private:
  std::atomic<bool> is_under_way_{false};
};

} // namespace troupe
