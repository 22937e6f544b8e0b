// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/elastic/job_members.hpp>
#include <troupe/apps/launch/guardian.hpp>
#include <troupe/apps/launch/hosts/job_hosts.hpp>
#include <troupe/apps/launch/job.hpp>
#include <troupe/apps/launch/job_folders.hpp>
#include <troupe/apps/launch/join_request.hpp>
#include <troupe/apps/launch/launched_rank.hpp>
#include <troupe/apps/launch/output_stream.hpp>
#include <troupe/apps/launch/poll_list.hpp>
#include <troupe/apps/launch/signal_pipe.hpp>
#include <troupe/comm/tls/job_credentials.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

using job_clock = std::chrono::steady_clock;

/// How far the end of a job has come, and when it goes on.
struct job_ending {
  enum class stage { none, leaving, terminating, killing };

  stage at = stage::none;
  std::optional<job_clock::time_point> next{};

  /// How long `poll` may wait: -1 is for ever.
  int milliseconds() const;
};

/// A job that runs: what `run_job` does. How its ranks change while it runs is
/// in job_changes.cpp, the rest in job.cpp.
///
/// Thread rule: the process's first thread.
class running_job {
public:
  /// Starts the ranks. Throws error(io_failure).
  explicit running_job(const job_options& options);
  /// Waits until all have ended.
  job_result run();

private:
  job_members::completion meeting() const;
  bool takes_more() const;
  void start_on_this_host();
  void start_on_hosts();
  void start_more();
  std::unique_ptr<launched_rank> start_at_host(std::size_t rank,
                                               rank_log::start log_from);
  std::size_t host_of(std::size_t rank) const;
  bool has_lost_host_of(std::size_t rank) const;
  bool is_starting() const;
  std::size_t logins_at(std::size_t host) const;
  int longest_wait() const;
  void guard();
  bool have_all_ended() const;
  void wait();
  void wait_for_rank(launched_rank& rank, poll_list& list);
  void wait_for_writer(output_stream& stream, poll_list& list);
  void take_signals();
  void pass_on(int signal);
  void look_at_ranks(pid_t first);
  void look_at(std::size_t rank);
  void look_at_output();
  bool goes_on() const;
  bool goes_on_without(const launched_rank& ended) const;
  void take_joins();
  join_answer let_join(const join_request& request);
  std::string why_not_to_join(const join_request& request) const;
  void add_hosts(const std::string& list);
  void add_rank();
  void place_rank(std::size_t place);
  void send_guests_away();
  void look_at_hosts();
  void go_on_without_host(const job_hosts::loss& lost);
  void fill_host(std::size_t host);
  void replace_ended();
  void replace(std::size_t rank);
  void kill_silent();
  void note(const std::string& line);
  void fail(std::size_t rank);
  void tell_end_of_other(std::size_t rank);
  void begin_end(std::chrono::milliseconds grace);
  void go_on_with_end();
  void send(int signal);
  void finish_output();
  bool has_notable_logs() const;
  job_result result();
  std::string failure_of_rank() const;

  job_options options_; ///< hosts can be added
  signal_pipe signals_;
  // Its end comes last: until then the launcher can be killed.
  std::unique_ptr<guardian> guardian_;
  job_folders folders_;
  own_streams streams_;
  std::vector<comm::job_credentials> credentials_;    ///< by rank
  std::vector<std::unique_ptr<launched_rank>> ranks_; ///< those started so far
  std::optional<job_members> members_;                ///< of an elastic job
  std::optional<job_hosts> hosts_; ///< of an elastic job on other hosts
  std::vector<job_hosts::loss> hosts_to_lose_{}; ///< ranks have lost them
  std::vector<std::size_t> to_replace_{}; ///< ranks of it that were killed
  bool has_success_ = false;              // a rank has ended so
  bool epoch_is_due_ = false;             // because of such a rank
  job_ending ending_;
  std::optional<std::size_t> first_failed_; ///< a rank
  std::string failed_hosts_;                ///< why too few ranks are left
  std::string failed_output_;               ///< why output could not be written
  int passed_on_ = 0; ///< the first signal that was passed on
  bool was_interrupted_ = false;
};

} // namespace troupe::apps
