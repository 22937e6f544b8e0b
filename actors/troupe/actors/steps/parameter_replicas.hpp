// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/placement.hpp>
#include <troupe/graph/ssa_graph.hpp>
#include <troupe/kernels/device.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::actors {

/// Synchronizes a graph's persistable variables between devices while no step
/// runs. Each device of this process has a replica in the scope; that of the
/// first one is the application's.
///
/// Thread rule: not synchronized. The arguments must outlive the object.
class parameter_replicas {
public:
  parameter_replicas(const graph::ssa_graph& g, scope& parameters,
                     std::span<const std::shared_ptr<device>> devices,
                     placement where);

  /// Called before the first step. Copies to each device the missing values
  /// that its ops read, discards copies that steps will not update, and moves
  /// values out of memory that the device cannot reach. Throws error(not_found)
  /// naming a variable without a value.
  void spread();
  /// Called before a step if another executor has discarded values of the scope
  /// since `spread`. Throws error(invalid_argument) naming a variable whose
  /// value steps need and do not have, and the devices of both executors.
  void require_values() const;
  /// Called after steps. Brings the application's values up to date, in plain
  /// layout.
  void update_scope();
  /// Gives variables the values of `from`, in host memory, which lie in the
  /// scope and on the devices that the graph has them on. Discards other
  /// copies. If this throws, nothing has changed.
  void replace(const scope& from);

private:
  bool is_here(std::size_t device) const { return where_.is_here(device); }
  scope& replica_of(std::size_t device) const {
    return parameters_.replica(where_.replica_of(device));
  }
  /// The first device of this process, which has one.
  std::size_t first_here() const;
  void add_devices();
  void give(std::string_view name, std::size_t to);
  tensor copied(const tensor& value, const scope& of, std::size_t to);
  variable value_for(const variable& value, const scope& of, std::size_t to);
  void forget_old_copies();
  void bring_to_plain_layout();

  const graph::ssa_graph& graph_;
  scope& parameters_;
  std::span<const std::shared_ptr<device>> devices_;
  placement where_;
};

} // namespace troupe::actors
