// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/kernels/variable.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Owns the variables that outlive a step (parameters, optimizer state,
/// statistics), by name. Training, test and server executors can share one
/// scope. An executor's first device uses the scope itself. Device i > 0 uses
/// replica i, except for variables that devices share.
///
/// References stay valid as long as the scope. Thread rule: call `var`,
/// `replica` and `drop_replicas` only while no executor runs on the scope.
class scope {
public:
  scope();
  ~scope();
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;

  /// The variable of that name. An empty one is created if there is none.
  variable& var(std::string_view name);
  ///@{
  /// Null if there is none.
  variable* find(std::string_view name) noexcept;
  const variable* find(std::string_view name) const noexcept;
  ///@}
  /// All names, sorted.
  std::vector<std::string> names() const;

  /// The scope of device `index`: this scope for 0, otherwise a replica. A
  /// replica is created empty at first use; the executor fills it from device
  /// 0.
  scope& replica(std::size_t index);
  /// Number of replicas. Replica i belongs to device i, from 1 on.
  std::size_t replicas() const noexcept { return replicas_.size(); }
  /// Deletes the replicas. Call it after changing values that executors have
  /// already copied to replicas, for example after loading parameters.
  /// Executors made before the call must not run again.
  void drop_replicas() noexcept;

private:
  std::map<std::string, std::unique_ptr<variable>, std::less<>> variables_;
  std::vector<std::unique_ptr<scope>> replicas_;
};

} // namespace troupe
