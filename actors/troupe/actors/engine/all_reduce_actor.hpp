// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/stream_actor.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

/// Runs all collectives of a graph, in the one order that the graph fixes.
///
/// Devices and nodes that run collectives in different orders wait for each
/// other for ever. Order edges make it impossible within a graph; this actor,
/// through which every collective goes, proves it at run time: one that comes
/// out of turn fails its step with error(order_mismatch) and both orders.
class all_reduce_actor final : public stream_actor {
public:
  using stream_actor::stream_actor;

  /// A collective that runs here: its place in the graph's order, its name.
  struct turn {
    std::int32_t index;
    std::string name;
  };
  /// Sets the collectives that run here, in their order. Before the first step.
  void set_order(std::vector<turn> order) {
    order_ = std::move(order);
    admits();
  }

protected:
  void admit(ready_op& op) override;

private:
  std::vector<turn> order_;
  std::size_t next_ = 0; // in order_: whose turn it is
};

} // namespace troupe::actors
