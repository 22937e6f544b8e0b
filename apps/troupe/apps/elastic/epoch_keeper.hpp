// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/elastic/epoch_consensus.hpp>
#include <troupe/apps/elastic/job_members.hpp>
#include <troupe/apps/elastic/job_processes.hpp>
#include <troupe/apps/elastic/rendezvous_duty.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::apps {

class other_hosts;

/// Keeps the rendezvous of an elastic job whose launcher keeps none: looks who
/// has ended or come, and begins the epochs. Among several hosts, these vote on
/// each epoch (epoch_consensus.hpp).
class epoch_keeper final : public rendezvous_duty {
public:
  struct job {
    std::size_t size = 1; ///< number of processes with which it begins
    std::size_t most = 1; ///< as many may take part
    ///@{
    /// For several hosts: the name of this one, where it is reached, and the
    /// first of the ports at which runs begin.
    std::string host = {};
    std::string address = {};
    std::uint16_t port = 0;
    ///@}
  };
  /// What else it needs among several hosts. Must outlive it.
  struct network {
    other_hosts& others;
    vote_memory& votes; ///< read_votes of the folder; changes
  };

  /// @param among nothing if all ranks are on this host
  /// Folder and processes must outlive the object.
  epoch_keeper(const std::string& folder, const job_processes& processes,
               job of, std::optional<network> among = {});

  void keep(clock::time_point now) override;
  bool is_missed() const override;

  /// True if the hosts that are reached may decide which epoch follows the last
  /// one.
  bool has_votes() const;
  /// True if the job has begun, and may not go on with the hosts that are
  /// reached.
  bool lacks_votes() const;

private:
  std::vector<std::uint64_t> living() const;
  bool is_of_this_host(std::uint64_t number) const;
  bool may_live(std::uint64_t number, const std::vector<std::uint64_t>& living,
                clock::time_point now) const;
  bool knows_all_hosts() const;
  void begin_job(clock::time_point now);
  std::vector<std::uint64_t>
  first_members(std::vector<std::uint64_t> living) const;
  void look_after_members(clock::time_point now);
  void remove_ended(const std::vector<std::uint64_t>& living,
                    clock::time_point now);
  void add_new(const std::vector<std::uint64_t>& living, clock::time_point now);
  bool begin_next(clock::time_point now);
  void kill(std::uint64_t number) const;

  bool propose(comm::job_epoch next, clock::time_point now);
  void settle(clock::time_point now);
  void begin_decided(clock::time_point now);
  void note_hosts(const comm::job_epoch& epoch);
  void name_hosts(comm::job_epoch& epoch) const;
  void make_credentials(const comm::job_epoch& epoch);

  const std::string& folder_;
  const job_processes& processes_;
  job job_;
  std::optional<network> among_;
  std::optional<job_members> members_;
  bool is_due_ = false;          ///< an epoch
  std::set<std::uint64_t> gone_; ///< are no members any more

  // The rest is not used on a single host.
  std::optional<epoch_candidate> candidate_;
  vote_memory kept_; ///< in the folder
  std::optional<comm::job_epoch> begun_, proposed_;
  clock::time_point taken_over_{};
  /// Members on the host that kept the rendezvous before, if it is another one.
  std::set<std::uint64_t> of_lost_keeper_;
  /// Members on this host, also those that ended before this process began.
  std::set<std::uint64_t> had_;
  std::map<std::uint64_t, std::string> credentials_; ///< of `begun_`
};

/// The number of a process of a job on several hosts: no other process has it,
/// and numbers increase with the ranks as which processes were started. Throws
/// error(io_failure).
std::uint64_t draw_number(std::size_t rank);

} // namespace troupe::apps
