// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/gate.hpp>
#include <troupe/apps/elastic/host_wire.hpp>
#include <troupe/apps/elastic/job_processes.hpp>
#include <troupe/apps/elastic/rendezvous_duty.hpp>

#include <functional>
#include <optional>
#include <string>

namespace troupe::apps {

/// A host's connection to who keeps the rendezvous of a job on several hosts.
/// It keeps the folder in which the ranks of this host meet like that of the
/// other one: epochs come from there, and what the ranks tell goes there. It
/// votes on them. If the connection ends, it makes another one.
class epoch_follower final : public rendezvous_duty {
public:
  /// Connects to who keeps the rendezvous. Throws error(peer_failure) if nobody
  /// does at the moment.
  /// @param at the address of which another host has told; may be empty
  using connection = std::function<actors::admission(const std::string& at)>;
  /// Is told what this host misses, such as "cannot reach ...". Once per
  /// connection, if there has been none for some seconds.
  using warning = std::function<void(const std::string& what)>;

  /// @param votes read_votes of the folder; changes with what is answered
  /// @param host differs from the names of all other hosts
  /// Folder, processes and votes must outlive the object.
  epoch_follower(const std::string& folder, const job_processes& processes,
                 vote_memory& votes, std::string host, connection connect,
                 warning warn);
  /// Tells that this process ends.
  ~epoch_follower() override;
  epoch_follower(const epoch_follower&) = delete;
  epoch_follower& operator=(const epoch_follower&) = delete;

  void keep(clock::time_point now) override;
  /// True if who keeps the rendezvous has told this host something, and is
  /// connected.
  bool is_told() const noexcept {
    return wire_ && !absent_since_ && has_heard_;
  }
  /// For how long nobody who keeps the rendezvous has told this host anything,
  /// since that was first noticed.
  clock::duration absence(clock::time_point now) const {
    return absent_since_ ? now - *absent_since_ : clock::duration{};
  }

private:
  bool has_connection(clock::time_point now);
  void note_absence(const std::string& why, clock::time_point now);
  void obey(const host_order& order);
  void report(clock::time_point now);

  const std::string& folder_;
  const job_processes& processes_;
  vote_memory& votes_;
  connection connect_;
  warning warn_;
  host_report last_; ///< that was sent
  std::optional<host_wire> wire_;
  clock::time_point last_sign_{}, last_report_{}, next_try_{};
  std::optional<clock::time_point> absent_since_;
  bool has_warned_ = false;
  bool has_heard_ = false; ///< an order from `wire_`
  std::string elsewhere_;  ///< is the rendezvous kept, as another host says
};

} // namespace troupe::apps
