// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/base/event_reader.hpp>
#include <troupe/dashboard/source/event_source.hpp>
#include <troupe/trace/trace_writer.hpp>

namespace troupe::dashboard {

/// Reads the events of a running executor. Messages are recorded only while
/// somebody looks.
class live_source final : public event_source {
public:
  /// @param of must outlive the object
  explicit live_source(executor& of);

  const trace::process_trace& head() const override { return head_; }
  bool is_recorded() const noexcept override { return false; }
  std::uint64_t generation() const noexcept override { return 0; }
  void watch(bool by_somebody) override;
  std::vector<trace_event> take() override;
  actor_table::changes take_actors() override;
  std::uint64_t now_ns() const override;
  std::uint64_t lost() const override { return events_.lost(); }
  trace_level level() const override { return of_.trace().level(); }
  run_state state() const override;
  std::chrono::milliseconds op_delay() const override;
  std::vector<delayed_op> delayed_ops() const override;
  actors::wait_chain why(const live_picture& picture,
                         std::optional<handle_id> id) const override;
  std::vector<actors::collective_wait> collectives() const override {
    return of_.collectives();
  }
  std::optional<std::filesystem::path>
  obey(command what, std::chrono::milliseconds delay) override;

private:
  executor& of_;
  trace::process_trace head_;
  event_reader events_;
  level_request level_;
  std::uint64_t actors_known_ = 0; // version of the recorder's table
  trace::clock_reading begin_, last_;
};

} // namespace troupe::dashboard
