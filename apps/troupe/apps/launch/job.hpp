// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/launch/hosts/hosts.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// How ranks are started on other hosts.
struct remote_start {
  std::vector<job_host> hosts;
  /// The remote shell and its options. The host and a command follow it.
  std::vector<std::string> shell;
  std::string program; ///< path of troupe on the other hosts
  /// Network interface of each host by which the others reach it. Empty: its
  /// name leads to its address.
  std::string interface = {};
  /// At which rank 0 waits for the others. Nothing: drawn from the job's name.
  std::optional<std::uint16_t> port = std::nullopt;
};

/// How many ranks an elastic job may have.
struct rank_range {
  std::size_t least = 0, most = 0;
};

struct job_options {
  std::size_t ranks = 1;            ///< at the start
  std::vector<std::string> command; ///< the same for all ranks
  /// Folder for the logs. Empty: a temporary one, which is kept if the job
  /// fails.
  std::string logs = {};
  /// How long the other ranks may go on after one has failed, and again after
  /// SIGTERM.
  std::chrono::milliseconds grace{5000};
  /// Each rank gets cores of its own, if there are as many cores as ranks: in
  /// an elastic job, as it may have at most.
  bool binds = true;
  /// If set, the job is elastic: a rank that a signal has killed is started
  /// again, the job goes on while the least number of ranks live, and others
  /// can join (`ask_to_join`).
  std::optional<rank_range> elastic = std::nullopt;
  /// If set, the ranks run on its hosts, which have `ranks` ranks together. No
  /// others can join such a job.
  std::optional<remote_start> remote = std::nullopt;

  /// Number of places for ranks.
  std::size_t places() const { return elastic ? elastic->most : ranks; }
};

struct job_result {
  int code = 0;          ///< exit code of the launcher
  std::string failure{}; ///< one line; empty if all ranks succeeded
};

/// Starts the ranks as processes, passes on their output and the signals that
/// this process receives, and waits until all have ended. None outlives the
/// call, nor this process. Only a rank of another host that ignores SIGTERM can
/// do so, for `grace`.
///
/// If a rank fails, the others can end by themselves; then they get SIGTERM,
/// then SIGKILL. A line on standard error tells of each that fails, too. A
/// second SIGINT kills all ranks.
///
/// In an elastic job, each change of the living ranks begins an epoch
/// (comm/job_epoch.hpp). A rank that does not notice that the epoch has ended,
/// because it is stopped, is killed. A host that is lost takes its ranks with
/// it; if it comes back, they join again.
///
/// Thread rule: the process's first thread. Throws error(io_failure) if the
/// ranks cannot be started.
job_result run_job(const job_options& options);

} // namespace troupe::apps
