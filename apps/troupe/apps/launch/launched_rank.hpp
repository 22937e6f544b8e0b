// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/launch/hosts/remote_shell.hpp>
#include <troupe/apps/launch/job.hpp>
#include <troupe/apps/launch/job_folders.hpp>
#include <troupe/apps/launch/output_stream.hpp>
#include <troupe/apps/launch/rank_log.hpp>
#include <troupe/apps/launch/rank_process.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <unistd.h>

namespace troupe::apps {

/// Standard output and error of the launcher.
struct own_streams {
  output_stream out{STDOUT_FILENO};
  output_stream err{STDERR_FILENO};
};

struct rank_plan;

/// The port at which rank 0 of a run on several hosts waits for the others.
/// @param run a name that no other run has
std::uint16_t port_of_run(const remote_start& remote, const std::string& run);

/// A rank of a job: a process of this host, or one of another host. The latter
/// is represented by the process of the remote shell that started it.
///
/// Thread rule: that of rank_process.
struct launched_rank {
  rank_log log;
  rank_process process;
  rank_stream out;
  rank_stream err;
  std::string host{};                  ///< empty: this host
  std::optional<remote_input> input{}; ///< of a rank of another host
  bool is_logged_in = false;           ///< on another host
  bool was_told_to_die = false;        ///< by `kill`

  launched_rank(rank_plan plan, own_streams& to);

  /// Sends a signal to the rank and what it has started. SIGKILL goes to the
  /// remote shell. When that has ended, the input of the other host does, and
  /// so does the rank there.
  void send(int signal);
  /// Kills the rank. On another host, its own remote shell is left to tell of
  /// that; if it is called again, that ends too.
  void kill();
  /// True if a signal has ended the rank, as far as that can be told.
  bool was_killed() const;
  /// True if the remote shell has ended by itself: it could not log in, or has
  /// lost the host.
  bool has_lost_host() const;
  /// True while the remote shell is not logged in.
  bool is_on_its_way();
  /// Looks whether it has ended. Does not wait. If so, closes the input.
  const std::optional<process_end>& look();
  /// Of one that has ended: that of the launch, if it is the first to fail.
  int exit_code() const;
  /// "rank 1 failed with exit code 3"; of another host, names that.
  std::string end_text(std::size_t rank) const;
  /// ": " and the last line of errors; empty if there is none.
  std::string last_words() const;
  /// Of one that has ended: kills what it has started, and passes on the rest
  /// of its output.
  void clear_away();
};

///@{
/// Starts a rank. Throws error(io_failure) if its process, its log or a pipe
/// cannot be made.
/// @param member its number in an elastic job
std::unique_ptr<launched_rank>
start_here(std::size_t rank, const job_options& options,
           const job_folders& folders, own_streams& to,
           std::optional<std::uint64_t> member = std::nullopt,
           rank_log::start log_from = rank_log::start::empty);
/// @param credentials text of a file of credentials; empty: it needs none, or
///   those of an elastic job
/// @param meeting name of the folder in which the ranks of that host meet
std::unique_ptr<launched_rank>
start_on_host(std::size_t rank, const job_options& options,
              const job_folders& folders, own_streams& to,
              const std::string& credentials,
              std::optional<std::uint64_t> member = std::nullopt,
              const std::string& meeting = {},
              rank_log::start log_from = rank_log::start::empty);
///@}

} // namespace troupe::apps
