// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe::actors {

/// Which ready ops of a graph other workers may take.
enum class op_sharing : std::uint8_t {
  long_ops, ///< those that their own worker will not reach soon
  no_ops,   ///< none: the streams stay with one worker
  all_ops,  ///< any, however short the worker's ops are
};

/// Chooses how the workers share a graph's ops, from the durations of its
/// steps.
///
/// Usually they share long ops. If ops are so short that moving one to another
/// worker takes longer than running it, one worker may finish a step sooner
/// than several, or several may be faster because each of them gets much work
/// that depends on nothing else. That depends on the graph and on the machine,
/// so both ways are tried. The faster one is kept, and the other one is tried
/// again from time to time, ever more rarely.
///
/// Thread rule: one thread.
class sharing_choice {
public:
  /// After this many consecutive short steps, short ops are no longer shared.
  static constexpr std::uint32_t short_steps_before_trials = 8;
  /// Number of steps in a trial.
  static constexpr std::uint32_t trial_steps = 4;
  /// The way that won a trial is kept for this many steps. The number doubles
  /// each time that the other way loses again.
  static constexpr std::uint32_t fewest_steps_kept = 64;
  static constexpr std::uint32_t most_steps_kept = 1u << 14;

  op_sharing now() const noexcept { return way_; }

  /// Takes the duration of a step that has ended.
  /// @param is_short true if its ops were short on average
  void took(std::uint64_t step_ns, bool is_short) noexcept;
  /// Forgets all durations, because those of the next steps will differ.
  void start_over() noexcept;

private:
  op_sharing other_way() const noexcept {
    return way_ == op_sharing::no_ops ? op_sharing::all_ops
                                      : op_sharing::no_ops;
  }
  std::uint64_t& least_ns(op_sharing way) noexcept {
    return least_ns_[static_cast<std::size_t>(way)];
  }
  void keep(op_sharing way, std::uint32_t steps) noexcept;
  void try_other_way() noexcept;
  void end_trial() noexcept;

  op_sharing way_ = op_sharing::long_ops;
  bool is_trial_ = false;
  /// Number of steps until the next decision.
  std::uint32_t steps_left_ = short_steps_before_trials;
  std::uint32_t steps_kept_ = fewest_steps_kept;
  std::array<std::uint64_t, 3> least_ns_{}; // by way: its fastest step
};

} // namespace troupe::actors
