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
/// statistics) by name. One scope is shared by train, test and server
/// executors; the first device of an executor works on the scope itself,
/// device i > 0 on its replica i, but for variables that devices share.
///
/// Thread rule: `var`, `replica` and `drop_replicas` while no executor runs on
/// the scope. References stay valid as long as the scope.
class scope {
public:
  scope();
  ~scope();
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;

  /// The variable of that name, made empty if there is none.
  variable& var(std::string_view name);
  ///@{
  /// Null if there is none.
  variable* find(std::string_view name) noexcept;
  const variable* find(std::string_view name) const noexcept;
  ///@}
  /// All names, sorted.
  std::vector<std::string> names() const;

  /// The scope of device number `index`: itself for 0, else a replica, made
  /// empty at first use. Whoever makes an executor fills replicas by broadcast.
  scope& replica(std::size_t index);
  /// Replicas that there are: of devices 1 to that number.
  std::size_t replicas() const noexcept { return replicas_.size(); }
  /// Forgets the replicas; call it after changing values that executors have
  /// already spread (loading parameters). Executors made before must not run
  /// again.
  void drop_replicas() noexcept;

private:
  std::map<std::string, std::unique_ptr<variable>, std::less<>> variables_;
  std::vector<std::unique_ptr<scope>> replicas_;
};

} // namespace troupe
