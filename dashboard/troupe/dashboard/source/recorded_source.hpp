// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/dashboard/source/event_source.hpp>

#include <cstddef>

namespace troupe::dashboard {

/// Plays the events of a file. At first all of them are there at once; after
/// `command::rewind` they come step by step, or as fast as they were recorded,
/// and each op so much later as `command::slow` says.
class recorded_source final : public event_source {
public:
  using clock = std::chrono::steady_clock;

  /// @param parts at least one: those of the ranks of a run, on one clock
  ///   (`trace::merge_clocks`)
  /// @param now the time, for tests
  explicit recorded_source(std::vector<trace::process_trace> parts,
                           clock::time_point (*now)() = &clock::now);

  const trace::process_trace& head() const override { return trace_; }
  std::vector<trace::run_info> ranks() const override { return ranks_; }
  bool is_recorded() const noexcept override { return true; }
  std::uint64_t generation() const noexcept override { return generation_; }
  void watch(bool) override {}
  std::vector<trace_event> take() override;
  actor_table::changes take_actors() override;
  std::uint64_t now_ns() const override;
  std::uint64_t lost() const override { return trace_.lost; }
  trace_level level() const override { return trace_.run.level; }
  run_state state() const override;
  std::chrono::milliseconds op_delay() const override { return delay_; }
  actors::wait_chain why(const live_picture& picture,
                         std::optional<handle_id> id) const override;
  std::optional<std::filesystem::path>
  obey(command what, std::chrono::milliseconds delay) override;

private:
  std::size_t end_of_step() const;
  std::size_t end_of_what_is_due(clock::duration passed);

  std::vector<trace::run_info> ranks_;
  trace::process_trace trace_;
  clock::time_point (*now_)();
  std::uint64_t generation_ = 0;
  std::size_t next_ = 0; // event
  bool has_given_actors_ = false;
  bool is_paused_ = false;
  bool wants_step_ = false;
  bool is_played_ = false; // else all events are due
  std::chrono::milliseconds delay_{0};
  clock::time_point last_;              // `take`, or begin to play
  std::chrono::nanoseconds unspent_{0}; // played since the last event
  std::uint64_t now_ns_ = 0;            // of the last event
};

} // namespace troupe::dashboard
