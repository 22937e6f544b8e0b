// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/gate.hpp>
#include <troupe/apps/elastic/host_network.hpp>
#include <troupe/comm/rank_environment.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>

namespace troupe::apps {

/// The network between hosts of a job without a launcher: TLS, with the
/// credentials of `troupe credentials`. Those of rank 0 are those of who lets
/// others in.
class host_gates final : public host_network {
public:
  /// @param ends ends all waiting; must outlive the object
  host_gates(const comm::rank_environment& found,
             const std::atomic<bool>& ends);
  /// Waits for what `tell` has begun: some seconds at most.
  ~host_gates() override;

  actors::admission connect(const std::string& address) override;
  std::unique_ptr<entrance>
  open(const std::string& address,
       std::function<void(actors::passage)> admit) override;
  void tell(const std::string& address, const host_report& what) override;

private:
  actors::way_in way_to(const std::string& address, std::size_t rank) const;

  const comm::rank_environment found_;
  const std::atomic<bool>& ends_;
  std::atomic<bool> has_told_ = true;
  std::thread telling_;
};

/// True if this host has an address of the one in TROUPE_ADDRESS. Throws what
/// `find_host` throws.
bool is_first_host(const comm::rank_environment& found);

} // namespace troupe::apps
