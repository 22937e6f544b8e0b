// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/node_id.hpp>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

namespace troupe::actors {

/// The members of a run over several processes: the node actor of each.
/// Messages from others to the run's actors are ignored.
///
/// Thread rule: `know` once, before the first step; all others from any thread.
class run_members {
public:
  explicit run_members(caf::strong_actor_ptr self) : self_(std::move(self)) {}

  /// The node actor of this process: the sender of messages to the others.
  const caf::strong_actor_ptr& self() const noexcept { return self_; }

  void know(const std::vector<caf::strong_actor_ptr>& others) {
    for (auto& o : others)
      others_.emplace_back(o->node(), o->id());
    known_.store(true, std::memory_order_release);
  }

  /// True if `who` is the node actor of another process; false for null.
  bool has(const caf::strong_actor_ptr& who) const {
    return who && has(who->node(), who->id());
  }

  /// True if an exit message from `who` is accepted: from this process or from
  /// a member.
  bool obeys(const caf::actor_addr& who) const {
    return who && (who.node() == self_->node() || has(who.node(), who.id()));
  }

private:
  bool has(const caf::node_id& node, caf::actor_id id) const {
    return known_.load(std::memory_order_acquire)
           && std::ranges::any_of(others_, [&](auto& o) {
                return o.second == id && o.first == node;
              });
  }

  caf::strong_actor_ptr self_;
  std::vector<std::pair<caf::node_id, caf::actor_id>> others_;
  // Stored with release once the members are known, loaded with acquire.
  std::atomic<bool> known_{false};
};

} // namespace troupe::actors
