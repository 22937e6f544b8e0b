// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe::actors {

/// Where the streams of a graph run: spread over the workers, or gathered on
/// the one that makes their ops ready. Ops that are shorter than the way from
/// worker to worker are done sooner by one; what that way costs depends on
/// machine and graph, so both are tried and the faster is kept.
///
/// A graph of longer ops is always spread. A trial takes a few steps and comes
/// back after more and more others.
///
/// Thread rule: one thread.
class spread_choice {
public:
  /// @param ops of one step
  explicit spread_choice(std::size_t ops) noexcept;

  /// How the next steps should run. At first: spread.
  bool gathered() const noexcept { return gathered_; }

  /// Learns how long a step took. Steps must be told in their order.
  void took(std::uint64_t step_ns) noexcept;

  /// A graph whose steps take longer than this per op is spread.
  static constexpr std::uint64_t longest_op_ns = 500;
  /// Steps that were under way when the streams moved tell nothing.
  static constexpr std::uint32_t settling_steps = 3;
  /// A trial's, those that settle included.
  static constexpr std::uint32_t trial_steps = 8;
  /// Between two trials: at first, and in the end.
  static constexpr std::uint32_t fewest_steps_between = 8;
  static constexpr std::uint32_t most_steps_between = 1024;

private:
  std::uint64_t& least() noexcept { return least_ns_[gathered_ ? 1 : 0]; }
  std::uint64_t& least_other() noexcept { return least_ns_[gathered_ ? 0 : 1]; }
  void move() noexcept;
  void begin_trial() noexcept;
  void end_trial() noexcept;

  std::uint64_t longest_step_ns_;
  bool gathered_ = false;
  bool trying_ = false;
  std::uint32_t steps_ = 0; // since the streams moved, or the trial ended
  std::uint32_t steps_between_ = fewest_steps_between;
  std::array<std::uint64_t, 2> least_ns_; // spread, gathered
};

} // namespace troupe::actors
