// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace troupe::apps {

/// What the process of a host does that holds the lock of the job's folder
/// there (kept_rendezvous): it keeps the rendezvous, or is the host's
/// connection to who does.
///
/// Thread rule: one thread.
class rendezvous_duty {
public:
  using clock = std::chrono::steady_clock;

  virtual ~rendezvous_duty() = default;
  /// Is called every few milliseconds. Throws error(io_failure | bad_file |
  /// peer_failure): the duty is given up then, and begins anew.
  virtual void keep(clock::time_point now) = 0;
  /// True if other processes would miss something if this one ended now.
  virtual bool is_missed() const { return false; }
};

} // namespace troupe::apps
