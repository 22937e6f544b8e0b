// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/stream_actor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// Runs all collectives of a graph, in the fixed order of the graph.
///
/// Devices and nodes that run collectives in different orders deadlock. Order
/// edges prevent this within a graph. This actor also checks it at run time,
/// because every collective goes through it: a collective that arrives out of
/// order fails its step with error(order_mismatch), which names both orders.
class all_reduce_actor final : public stream_actor {
public:
  using stream_actor::stream_actor;

  /// A collective that runs here: its position in the graph's order, and its
  /// name.
  struct turn {
    std::int32_t index;
    std::string name;
  };
  /// Sets the collectives that run here, in order. Called before the first
  /// step.
  void set_order(std::vector<turn> order) {
    order_ = std::move(order);
    admits();
  }

protected:
  void admit(ready_op& op) override;

private:
  std::vector<turn> order_;
  std::size_t next_ = 0; // in order_: the collective that is due
};

} // namespace troupe::actors
