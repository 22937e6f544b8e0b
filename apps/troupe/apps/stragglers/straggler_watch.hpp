// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/actors/tracing/core_times.hpp>
#include <troupe/apps/stragglers/digest_windows.hpp>
#include <troupe/apps/stragglers/op_digest.hpp>
#include <troupe/apps/stragglers/op_times.hpp>
#include <troupe/apps/stragglers/straggler_finder.hpp>
#include <troupe/apps/stragglers/usual_times.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace troupe::apps {

/// One rank's part in naming slow ranks: it sums up what its ops took in the
/// steps of a window and sends that to rank 0, which compares, and answers
/// which rank was the fastest at each op. In a run of one rank, it only knows
/// how long ops usually take.
///
/// Thread rule: one thread; `usual` any thread.
class straggler_watch {
public:
  /// Steps of a window. Four whole windows that agree name a rank. So what
  /// becomes slow at any time is named within 50 steps, if these are not so
  /// short that some windows are not told (`is_told`).
  static constexpr std::size_t window_steps = 10;

  struct parts {
    executor* exe = nullptr; ///< outlives the watch
    op_times* times = nullptr;
    std::size_t rank = 0;
    std::size_t ranks = 1;
    /// Called on rank 0 with a line for each rank that is named.
    std::function<void(const std::string&)> tell;
  };
  explicit straggler_watch(parts p);

  /// Called when a step has ended.
  void step_ended();
  /// How long an op handle of this process usually takes.
  usual_time usual(handle_id op) const;

private:
  void end_window();
  void tell_of_window();
  void read_notes();
  void take(std::size_t rank, op_digest digest);
  void compare(const std::vector<op_digest>& window);
  std::string name_of(const straggler& found) const;

  parts parts_;
  std::size_t steps_ = 0; // of the window
  std::uint64_t windows_ = 0;
  std::uint64_t window_begin_ns_ = 0;
  actors::core_times cores_; // when a window was told
  bool is_first_ = true;     // the first step's kernels choose their code
  usual_times usual_;
  // On rank 0:
  straggler_finder finder_;
  digest_windows digests_;
};

} // namespace troupe::apps
