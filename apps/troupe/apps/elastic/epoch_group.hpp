// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/apps/rank_part.hpp>
#include <troupe/comm/communicator.hpp>

#include <cstddef>
#include <memory>

namespace troupe::apps {

class meeting_store;

/// A group of all ranks of an epoch of an elastic job, for calls one after the
/// other: in shared memory, or over Gloo if they are on several hosts.
///
/// Thread rule: one thread.
class epoch_group {
public:
  /// Waits for the other ranks. Throws error(peer_failure) if the epoch ends
  /// meanwhile or a rank is missing after two minutes, and what
  /// `comm::join_shm_group` and `comm::join_gloo_group` throw.
  explicit epoch_group(rank_part& part);
  ~epoch_group();
  epoch_group(const epoch_group&) = delete;
  epoch_group& operator=(const epoch_group&) = delete;

  /// Makes a call and waits for its end. Throws error(peer_failure) if the
  /// epoch ends meanwhile or that takes two minutes.
  void call(comm::collective_kind kind, std::size_t root,
            const comm::rank_value& value);

private:
  rank_part& part_;
  std::shared_ptr<meeting_store> store_; ///< null on one host
  std::unique_ptr<comm::communicator> end_;
};

} // namespace troupe::apps
