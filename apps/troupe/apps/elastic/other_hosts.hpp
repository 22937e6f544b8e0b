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
/// processes live there.
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
  /// The last epoch of which any host has told.
  const std::optional<comm::job_epoch>& last_epoch() const noexcept {
    return last_epoch_;
  }
  /// A number from 1 on, and the address of the host of a process that lives.
  std::size_t host_of(std::uint64_t number) const;
  const std::string& address_of(std::uint64_t number) const;

  /// Tells all hosts of an epoch, each with the credentials of its members.
  void tell(const comm::job_epoch& epoch,
            std::map<std::uint64_t, std::string> credentials);
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
  void take(host& from, host_report report);
  void look_at(host& one, clock::time_point now);
  void order(host& to, std::vector<std::uint64_t> ends = {});
  const host& with(std::uint64_t number) const;

  const std::string& folder_;
  std::mutex mutex_;
  std::list<host_wire> admitted_; // under `mutex_`
  std::list<host_wire> strangers_;
  std::list<host> hosts_; // in the order in which they came
  std::optional<comm::job_epoch> last_epoch_, told_;
  std::map<std::uint64_t, std::string> credentials_; // of `told_`
  std::vector<std::string> words_;                   // that all hosts know
  clock::time_point now_{}, last_beat_{};
};

} // namespace troupe::apps
