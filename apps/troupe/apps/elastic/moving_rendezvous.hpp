// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/elastic/epoch_follower.hpp>
#include <troupe/apps/elastic/epoch_keeper.hpp>
#include <troupe/apps/elastic/host_network.hpp>
#include <troupe/apps/elastic/job_processes.hpp>
#include <troupe/apps/elastic/other_hosts.hpp>
#include <troupe/apps/elastic/rendezvous_duty.hpp>
#include <troupe/comm/job_epoch.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// A host's part in the rendezvous of a job on several hosts. One of them keeps
/// it, and the others follow that one. If it is lost, the next host of the last
/// epoch asks the others for their votes, and keeps it if these are enough
/// (epoch_consensus.hpp). It may be any: only votes decide whether epochs
/// begin, the order of the hosts only decides who tries it first.
class moving_rendezvous final : public rendezvous_duty {
public:
  struct job {
    epoch_keeper::job of;       ///< its address: of the first host
    bool is_first_host = false; ///< this one has that address
  };

  /// @param warn as for epoch_follower
  /// All but `of` and `warn` must outlive the object. Throws error(bad_file |
  /// io_failure | peer_failure).
  moving_rendezvous(const std::string& folder, const job_processes& processes,
                    job of, host_network& on, epoch_follower::warning warn);

  void keep(clock::time_point now) override;
  bool is_missed() const override;

private:
  /// What who keeps the rendezvous has.
  struct office {
    office(const std::string& folder, const job_processes& processes,
           vote_memory& votes, epoch_keeper::job of, host_network& on);

    other_hosts others;
    epoch_keeper keeper;
    std::unique_ptr<host_network::entrance> entrance; // uses `others`
  };

  /// What the first host has if another one keeps the rendezvous: ranks that
  /// are started know the first host alone.
  struct signpost {
    signpost(const std::string& folder, const std::string& own_address,
             host_network& on);

    other_hosts others;
    std::unique_ptr<host_network::entrance> entrance; // uses `others`
  };

  void follow(std::string first_try);
  void begin_to_keep(const std::string& address);
  void keep_it(clock::time_point now);
  void invite(clock::time_point now);
  void show_way(clock::time_point now);
  bool is_turn(clock::time_point now) const;
  std::vector<comm::job_epoch::site> sites() const; ///< of the last epoch
  std::string own_address() const;
  actors::admission connect(const std::string& told);
  std::vector<std::string> addresses() const;

  const std::string& folder_;
  const job_processes& processes_;
  job job_;
  host_network& on_;
  epoch_follower::warning warn_;
  vote_memory votes_;
  std::unique_ptr<office> office_;           ///< one of these two
  std::unique_ptr<epoch_follower> follower_; ///< is not null
  std::unique_ptr<signpost> signpost_;       ///< may be null
  std::string first_try_;    ///< who says that it keeps the rendezvous
  std::string kept_at_;      ///< address of the last connection
  std::size_t next_try_ = 0; ///< of the addresses
  std::optional<clock::time_point> lacks_votes_since_;
  bool has_warned_ = false; ///< of that
  clock::time_point last_invitation_{}, last_signpost_{};
};

} // namespace troupe::apps
