// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/launch/job.hpp>
#include <troupe/apps/launch/job_folders.hpp>
#include <troupe/apps/launch/launched_rank.hpp>
#include <troupe/apps/launch/poll_list.hpp>
#include <troupe/comm/job_epoch.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// The hosts of an elastic job on several hosts. On each runs `troupe
/// launch-host`, which keeps the folder in which the ranks of the host meet:
/// epochs go there, and what ranks tell comes into the launcher's own folder. A
/// host is lost when that process or its connection ends, or when it gives no
/// sign of life for some seconds. It is logged in again and again then.
///
/// Thread rule: that of rank_process.
class job_hosts {
public:
  using clock = std::chrono::steady_clock;

  /// Starts a process for each host. All arguments must outlive the object.
  /// Throws error(io_failure) if the remote shell cannot be started.
  job_hosts(const job_options& options, const job_folders& folders,
            own_streams& to);
  ~job_hosts();
  job_hosts(const job_hosts&) = delete;
  job_hosts& operator=(const job_hosts&) = delete;

  /// A host has been appended to those of the job. Throws what the constructor
  /// throws.
  void add();
  /// The name of the folder in which the ranks of a host meet from now on.
  std::string meeting_of(std::size_t host) const;
  /// Tells all hosts of an epoch, unless they know of it, and gives those who
  /// have ranks in it credentials for it, if they are several. The authority
  /// that signs these is forgotten: who was in another epoch cannot take part.
  /// Throws error(io_failure).
  void tell(const comm::job_epoch& epoch);

  void add_to(poll_list& list);
  /// Looks which hosts are lost and which are back. Call it after each wait.
  /// @param may_log_in lost hosts are to be logged in again
  void look(bool may_log_in);
  /// A rank has lost the connection to its host.
  void lose(std::size_t host, const std::string& why);
  bool is_lost(std::size_t host) const;

  ///@{
  /// Since the last call.
  struct loss {
    std::size_t host = 0;
    std::string why;
  };
  std::vector<loss> take_lost();
  /// Hosts that were lost and are there again.
  std::vector<std::size_t> take_back();
  /// True if processes were started that must not outlive the launcher.
  bool take_started();
  ///@}
  std::vector<pid_t> groups() const;

private:
  struct launched_host;

  void log_in(std::size_t host);
  void read_lines(launched_host& host);
  void take_line(launched_host& host, const std::string& line);

  const job_options& options_;
  const job_folders& folders_;
  own_streams& to_;
  std::vector<std::unique_ptr<launched_host>> hosts_;
  std::optional<comm::job_epoch> epoch_; ///< the last that was told
  std::vector<loss> lost_;
  std::vector<std::size_t> back_;
  bool has_started_ = true;
  clock::time_point last_look_ = clock::now();
};

} // namespace troupe::apps
