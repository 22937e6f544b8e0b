// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/io/npz.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstddef>
#include <vector>

namespace troupe::apps {

/// The values of a scope and its replicas after a step, to which a run goes
/// back if the next step fails. Copies nothing: the values are marked as
/// shared, so kernels write the new ones to other memory. At most two
/// generations of values are in memory.
///
/// Thread rule: one thread, while no step is running.
class parameter_backup {
public:
  /// @param replicas number of replicas, the scope itself included
  void take(scope& parameters, std::size_t replicas);
  /// Variables that had no tensor then keep what they have.
  void restore(scope& parameters) const;

private:
  std::vector<named_tensors> values_; // by replica
};

} // namespace troupe::apps
