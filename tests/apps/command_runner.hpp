// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <support/files.hpp>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe::test {

using words = std::vector<std::string>;
words operator+(words a, const words& b);

/// The result of a run of the command.
struct command_result {
  int code = -1; ///< exit code; 128 + number if a signal ended it
  std::string out;
  std::string err;
};

/// Runs the command `troupe` with `arguments` in a folder of its own, which has
/// a link to the folder `data`, with empty stdin. If `while_running` is given,
/// it is called every 5 ms, until it returns true, with the process number and
/// the output on stderr so far.
command_result run_troupe(
  const std::vector<std::string>& arguments,
  const std::function<bool(pid_t, const std::string&)>& while_running = {});

/// The same in a process that can use `kib` KiB of addresses (`ulimit -v`).
command_result run_troupe_within(std::size_t kib,
                                 const std::vector<std::string>& arguments);

/// The same in a process that can have `kib` KiB of data (`ulimit -d`).
command_result run_troupe_with_data(std::size_t kib,
                                    const std::vector<std::string>& arguments);

/// The same in a process that can have `threads` threads (`ulimit -u`). Works
/// only for root: the process changes to a user without other processes.
command_result
run_troupe_with_threads(std::size_t threads,
                        const std::vector<std::string>& arguments);

/// The same in a process whose soft limit of CPU time (`ulimit -S -t`) is
/// `seconds`.
command_result run_troupe_for(std::size_t seconds,
                              const std::vector<std::string>& arguments);

/// Runs a line of shell in `folder`, in which `troupe` is the command.
command_result run_in(const temporary_folder& folder, const std::string& line);

/// The processes of `troupe train` that a launch has started. Its guardian,
/// also its child, is none of them.
std::vector<pid_t> ranks_of(pid_t launch);
/// The process in place `place` of that job; 0 if there is none.
pid_t rank_in_place(pid_t launch, int place);

/// True if a running process is the command and has a handler for `signal`.
bool catches(pid_t process, int signal);

/// CPU time of all threads of a running process, in seconds; 0 if it has ended.
double cpu_seconds(pid_t process);

/// The lines of a text, without their ends.
std::vector<std::string> lines_of(const std::string& text);

/// The lines of a file of metrics up to a key, which leaves out what comes
/// after.
std::vector<std::string> metrics_before(const std::string& key,
                                        const std::filesystem::path& file);

/// True if `result` is a failure as users should see it: the exit code is
/// `code`, stdout is empty, and the last line of stderr begins with "troupe: "
/// and contains `parts`.
bool fails_with(const command_result& result, int code,
                const std::vector<std::string>& parts);

} // namespace troupe::test
