// SPDX-License-Identifier: Apache-2.0
#pragma once

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
/// runs. Each device has a replica in the scope; the replica of device 0 is the
/// application's.
///
/// Thread rule: not synchronized. The arguments must outlive the object.
class parameter_replicas {
public:
  /// @param device_is_here by device: true if it is in this process; empty: all
  ///   are
  parameter_replicas(const graph::ssa_graph& g, scope& parameters,
                     std::span<const std::shared_ptr<device>> devices,
                     std::vector<bool> device_is_here);

  /// Called before the first step. Copies to each device the missing values
  /// that its ops read, discards copies that steps will not update, and moves
  /// values out of memory that the device cannot reach. Throws error(not_found)
  /// naming a variable without a value.
  void spread();
  /// Called after steps. Brings the application's values up to date, in plain
  /// layout.
  void update_scope();

private:
  bool is_here(std::size_t device) const {
    return device_is_here_.empty() || device_is_here_[device];
  }
  void add_devices();
  void give(std::string_view name, std::size_t to);
  tensor copied(const tensor& value, const scope& of, std::size_t to);
  void forget_old_copies();
  void bring_to_plain_layout();

  const graph::ssa_graph& graph_;
  scope& parameters_;
  std::span<const std::shared_ptr<device>> devices_;
  std::vector<bool> device_is_here_;
};

} // namespace troupe::actors
