// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/entry.hpp>
#include <troupe/apps/elastic/host_wire.hpp>
#include <troupe/comm/job_epoch.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::apps {

/// The other hosts of an elastic job that no launcher keeps, as who keeps its
/// rendezvous sees them. A process of each is connected to it and reports which
/// processes live there and how it votes.
///
/// A host is *lost* when its connection has ended and it does not come again
/// within two seconds, or when it gives no sign of life for ten.
///
/// Thread rule: one thread, except for `admit`.
class other_hosts {
public:
  using clock = std::chrono::steady_clock;

  /// @param folder what hosts tell is repeated there; must outlive the object
  explicit other_hosts(const std::string& folder) : folder_(folder) {}

  /// A connection that belongs to the job. It says later from which host it is.
  void admit(actors::passage come);
  /// Takes what has come, gives signs of life, and looks which hosts are lost.
  void look(clock::time_point now);

  /// The numbers of the processes that live on hosts that are not lost.
  std::vector<std::uint64_t> living() const;
  /// True if a host has ever told that it has a process with this number.
  bool knows(std::uint64_t number) const;
  /// What the hosts that are not lost keep of their votes.
  std::vector<vote_memory> answers() const;
  /// What the host of a process that lives has told last.
  const host_report& host_of(std::uint64_t number) const;
  /// The address of a host that has told that it keeps the rendezvous; empty
  /// if none has.
  const std::string& kept_elsewhere() const noexcept { return kept_elsewhere_; }

  /// What all hosts are asked, and told if they come later.
  /// @param credentials of members of `asked.decided`; kept if that is no
  /// other one than before
  void ask(vote_request asked,
           const std::map<std::uint64_t, std::string>& credentials);
  /// This host does not keep the rendezvous: whoever comes is told where that
  /// is.
  void point_to(const std::string& address) { elsewhere_ = address; }
  /// Has the host of a process kill it.
  void kill(std::uint64_t number);

private:
  struct host {
    host_report last;
    std::set<std::uint64_t> has_had{};
    std::optional<host_wire> wire{};
    clock::time_point last_sign{}; ///< of life, or when the connection ended
    bool is_lost = false;
  };

  void take_strangers();
  bool receive(host_wire& from, host_report report);
  void check_job(const host_report& report) const;
  void take(host& from, host_report report);
  void look_at(host& one, clock::time_point now);
  void order(host& to, std::vector<std::uint64_t> ends = {});

  const std::string& folder_;
  std::mutex mutex_;
  std::list<host_wire> admitted_; // under `mutex_`
  std::list<host_wire> strangers_;
  std::list<host> hosts_; // in the order in which they came
  vote_request asked_;
  std::map<std::uint64_t, std::string> credentials_; // of `asked_.decided`
  std::vector<std::string> words_;                   // that all hosts know
  std::string kept_elsewhere_;                       // as another host has told
  std::string elsewhere_;                            // to be told to others
  clock::time_point now_{}, last_beat_{};
};

} // namespace troupe::apps
