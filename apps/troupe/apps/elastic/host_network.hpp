// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/gate.hpp>
#include <troupe/apps/elastic/host_wire.hpp>

#include <functional>
#include <memory>
#include <string>

namespace troupe::apps {

/// How the hosts of a job reach each other that keep the rendezvous themselves.
/// Who keeps it lets the others in, at the same port on each host.
///
/// Thread rule: one thread, but for what is said of `admit`.
class host_network {
public:
  /// Lets others in until it is destroyed.
  class entrance {
  public:
    virtual ~entrance() = default;
  };

  virtual ~host_network() = default;
  /// Connects to who keeps the rendezvous. Waits two seconds at most. Throws
  /// error(peer_failure) if nobody lets others in at this address.
  virtual actors::admission connect(const std::string& address) = 0;
  /// Lets others in at an address of this host. Throws error(peer_failure) if
  /// it cannot be used.
  /// @param admit is called on a thread of its own
  virtual std::unique_ptr<entrance>
  open(const std::string& address,
       std::function<void(actors::passage)> admit) = 0;
  /// Tells who lets others in at an address, if anybody does. Does not wait.
  virtual void tell(const std::string& address, const host_report& what) = 0;
};

} // namespace troupe::apps
