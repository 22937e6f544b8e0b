// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::test {

/// How a run of the command ended.
struct command_result {
  int code = -1; ///< exit code; 128 + number if a signal ended it
  std::string out;
  std::string err;
};

/// Runs the command `troupe` with `arguments` in the folder `data`'s parent,
/// stdin empty. `while_running`, if given, is called with the process number
/// and what stderr holds so far, every 5 ms until it returns true.
command_result run_troupe(
  const std::vector<std::string>& arguments,
  const std::function<bool(pid_t, const std::string&)>& while_running = {});

/// The same in a process that may use `kib` KiB of addresses (`ulimit -v`).
command_result run_troupe_within(std::size_t kib,
                                 const std::vector<std::string>& arguments);

/// The same in a process that may have `threads` threads (`ulimit -u`). Only
/// for root, whose process becomes one of a user that has no others.
command_result
run_troupe_with_threads(std::size_t threads,
                        const std::vector<std::string>& arguments);

/// Whether a process that runs is the command and handles `signal` itself.
bool catches(pid_t process, int signal);

/// CPU time of all threads of a process that runs, s; 0 once it has ended.
double cpu_seconds(pid_t process);

/// The lines of a text, without their ends.
std::vector<std::string> lines_of(const std::string& text);

/// True if `result` is a failure as users should see it: exit code `code`,
/// nothing on stdout, `parts` in the last line of stderr, which begins with
/// "troupe: ".
bool fails_with(const command_result& result, int code,
                const std::vector<std::string>& parts);

} // namespace troupe::test
