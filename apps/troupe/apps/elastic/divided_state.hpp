// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/kernels/scope.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// The optimizer state of an elastic job with the strategy reduce, of which
/// each rank has a part. Does nothing with other strategies.
///
/// Thread rule: one thread, while no step is running.
class divided_state {
public:
  divided_state() = default;
  /// @param parameters of a rank that has done no step yet: all have values
  explicit divided_state(const scope& parameters);

  bool is_divided() const noexcept { return !names_.empty(); }
  /// The variables without which the state is incomplete.
  const std::vector<std::string>& names() const noexcept { return names_; }

  /// Notes which variables the rank's devices update.
  /// @param first,own numbers of its first device, and of its devices
  void note(const executor& exe, std::size_t first, std::size_t own);
  /// Drops all values, before those of a backup are restored: what came from
  /// other ranks may be newer.
  void clear(scope& parameters) const;
  /// After a step: leaves the values that the rank's devices have updated, in
  /// the scope itself, and drops its replicas. Rank 0 can have got those of
  /// others before, for a snapshot or a test.
  void collect(scope& parameters) const;
  /// Puts the values of a run that begins into `parameters`.
  void begin_again(const scope& first, scope& parameters) const;

private:
  std::vector<std::string> names_;
  // Of variables that devices update: which replica has the value. Nothing: a
  // device of another rank.
  std::map<std::string, std::optional<std::size_t>> homes_;
};

} // namespace troupe::apps
