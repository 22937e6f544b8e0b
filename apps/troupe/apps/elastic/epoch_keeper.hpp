// SPDX-License-Identifier: Apache-2.0
#pragma once

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
/// has ended or come, and begins the epochs.
class epoch_keeper final : public rendezvous_duty {
public:
  struct job {
    std::size_t size = 1; ///< number of processes with which it begins
    std::size_t most = 1; ///< as many may take part
    ///@{
    /// For several hosts: where this one is reached, and the first of the ports
    /// at which runs begin.
    std::string address = {};
    std::uint16_t port = 0;
    ///@}
  };

  /// @param others null if all ranks are on this host
  /// All but `of` must outlive the object.
  epoch_keeper(const std::string& folder, const job_processes& processes,
               job of, other_hosts* others = nullptr);

  void keep(clock::time_point now) override;
  bool is_missed() const override;

private:
  std::vector<std::uint64_t> living() const;
  bool is_of_this_host(std::uint64_t number) const;
  bool may_live(std::uint64_t number, const std::vector<std::uint64_t>& living,
                clock::time_point now) const;
  bool knows_all_hosts() const;
  void begin(clock::time_point now);
  std::vector<std::uint64_t>
  first_members(std::vector<std::uint64_t> living) const;
  void remove_ended(const std::vector<std::uint64_t>& living,
                    clock::time_point now);
  void add_new(const std::vector<std::uint64_t>& living, clock::time_point now);
  void complete(comm::job_epoch& epoch);
  void tell_epoch();
  void kill(std::uint64_t number) const;

  const std::string& folder_;
  const job_processes& processes_;
  job job_;
  other_hosts* others_;
  std::optional<job_members> members_;
  clock::time_point taken_over_{};
  bool is_due_ = false;          ///< an epoch
  std::set<std::uint64_t> gone_; ///< are no members any more
  /// Members on this host before all of its processes ended.
  std::set<std::uint64_t> had_;
  std::uint64_t last_told_ = 0;                      ///< number of the epoch
  std::map<std::uint64_t, std::string> credentials_; ///< of other hosts
};

/// The number of a process of a job on several hosts: no other process has it,
/// and numbers increase with the ranks as which processes were started. Throws
/// error(io_failure).
std::uint64_t draw_number(std::size_t rank);

} // namespace troupe::apps
