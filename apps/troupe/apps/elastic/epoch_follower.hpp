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
/// other one: epochs come from there, and what the ranks tell goes there. If
/// the connection ends, it makes another one.
class epoch_follower final : public rendezvous_duty {
public:
  /// Connects to who keeps the rendezvous. Throws error(peer_failure) if nobody
  /// does at the moment.
  using connection = std::function<actors::admission()>;
  /// Is told, once per connection, why there has been none for some seconds.
  using warning = std::function<void(const std::string& why)>;

  /// @param host differs from the names of all other hosts
  /// Folder and processes must outlive the object.
  epoch_follower(const std::string& folder, const job_processes& processes,
                 std::string host, connection connect, warning warn);
  /// Tells that this process ends.
  ~epoch_follower() override;
  epoch_follower(const epoch_follower&) = delete;
  epoch_follower& operator=(const epoch_follower&) = delete;

  void keep(clock::time_point now) override;

private:
  bool has_connection(clock::time_point now);
  void note_absence(const std::string& why, clock::time_point now);
  void obey(const host_order& order);
  void report(clock::time_point now);

  const std::string& folder_;
  const job_processes& processes_;
  connection connect_;
  warning warn_;
  host_report last_; ///< that was sent
  std::optional<host_wire> wire_;
  clock::time_point last_sign_{}, last_report_{}, next_try_{};
  std::optional<clock::time_point> absent_since_;
  bool has_warned_ = false;
};

} // namespace troupe::apps
