// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/types.h>

namespace troupe::apps {

/// How a process ended.
struct process_end {
  bool killed = false;
  int number = 0; ///< exit code, or the signal that killed it

  bool is_success() const { return !killed && number == 0; }
  /// What a shell reports: the exit code, or 128 + the signal.
  int code() const { return killed ? 128 + number : number; }
  /// "failed with exit code 3", "was killed by SIGSEGV".
  std::string text() const;
};

/// What a process is started with.
struct process_start {
  /// The program, which is looked for in PATH, and its arguments.
  std::vector<std::string> command;
  std::vector<std::string> variables; ///< the whole environment, NAME=VALUE
  /// Standard input, output and error.
  std::array<int, 3> streams{0, 1, 2};
  /// The cores that it may use. Nothing: those of this process.
  std::optional<cpu_set_t> cores = std::nullopt;
};

/// A child process with a process group of its own, so that a signal also
/// reaches what it starts. It is killed if this process ends.
///
/// Thread rule: all calls from the thread that made it, which must live as long
/// as the child: Linux kills the child when this thread ends.
class rank_process {
public:
  /// Throws error(io_failure) if the command cannot be started.
  explicit rank_process(const process_start& start);
  /// Kills the whole group.
  ~rank_process();
  rank_process(const rank_process&) = delete;
  rank_process& operator=(const rank_process&) = delete;

  /// Number of the process and of its group. The system does not reuse it while
  /// the object exists, because the destructor is the first to reap the
  /// process.
  pid_t id() const noexcept { return id_; }
  /// Sends a signal to the group.
  void send(int signal) const;
  /// Looks whether the process has ended. Does not wait.
  const std::optional<process_end>& look();
  /// The result of the last look.
  const std::optional<process_end>& end() const noexcept { return end_; }

private:
  pid_t id_ = -1;
  std::optional<process_end> end_;
};

} // namespace troupe::apps
