// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/files/descriptor.hpp>
#include <troupe/base/recorder.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::apps {

/// What `troupe trace start` and `stop` ask of a running process.
struct trace_request {
  bool starts = false; ///< else: stops
  trace_level level = trace_level::messages;
  std::string file = {}; ///< absolute; empty: named after the process
};

/// Where a process finds requests: a piece of memory with a name (memfd), which
/// its own user alone can open, at /proc/PID/fd, and which ends with it.
/// Whoever asks writes the request there, sends SIGUSR2 and reads the answer
/// there. No process listens to a socket, and no file is left behind.
///
/// Thread rule: one thread at a time.
class trace_desk {
public:
  /// Without such memory, on an old system, there are no requests.
  trace_desk();

  /// Takes the request. Empty if there is none, or it makes no sense.
  std::optional<trace_request> take();
  /// True, once, if whoever has sent the signal no longer waits for an answer.
  bool was_given_up();
  /// Answers the request that was taken last, with the name of the file, or
  /// with why it failed.
  void answer(bool is_done, const std::string& text);

private:
  descriptor memory_;
};

/// The processes that a number means to who asks: the process itself, or if it
/// is a `troupe` that takes no requests, those of its children and their
/// children that do: the ranks that `troupe launch` has started on this host.
/// The process itself if there are none, or if it is another program, which may
/// have started several runs: `ask_process` says why it cannot be asked. In the
/// order of their numbers.
std::vector<pid_t> processes_to_ask(pid_t number);

/// Asks a process, and waits until it answers. Returns the name of the file. A
/// process that has not answered in time does nothing later either.
/// Throws error(not_found) if there is no such process, error(invalid_argument)
/// if it is another user's, is not Troupe, traces nothing or refuses, and
/// error(io_failure) if it ends meanwhile or does not answer.
std::string ask_process(pid_t process, const trace_request& request,
                        std::chrono::seconds patience = std::chrono::seconds{
                          30});

} // namespace troupe::apps
