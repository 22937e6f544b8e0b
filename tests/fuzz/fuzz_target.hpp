// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/error.hpp>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

namespace troupe::fuzz {

// Each executable of this folder has one target: a source that defines the two
// functions below. It is linked either with libFuzzer or with replay_main.cpp.

/// Gives a reader the bytes of a file. The reader may throw troupe::error;
/// anything else that it does (crash, other exception, hang) is a finding.
void run_target(std::string_view bytes);

/// How many bytes of memory the target may hold.
struct memory_allowance {
  std::size_t per_byte; ///< of its input
  std::size_t at_once = std::size_t{2} << 20;
};
memory_allowance allowance();

/// Runs the target on `bytes`. Ends the process with a message if it throws
/// what is no troupe::error of one line, or holds more memory than `allowance`
/// at any time.
void run_guarded(std::string_view bytes);

/// Calls `action`; errors that a user may meet are as good as success.
void accept_errors(const std::function<void()>& action);

/// The same for errors of these kinds alone. False if there was one.
bool accept_only(std::initializer_list<errc> kinds,
                 const std::function<void()>& action);

/// Ends the process with a message: a property of the target does not hold.
void fail(const std::string& why);

/// A file in memory with the given contents, for readers that take a path.
class memory_file {
public:
  explicit memory_file(std::string_view bytes);
  ~memory_file();
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  std::string path() const;

private:
  int descriptor_;
};

} // namespace troupe::fuzz
