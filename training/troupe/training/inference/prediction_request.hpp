// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/prediction.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace troupe::inference {

class predicting_executor;

/// A request that was let in. It is answered once: at the latest when it is
/// destroyed, then with error(cancelled).
///
/// Thread rule: one thread at a time.
class prediction_request {
public:
  using clock = std::chrono::steady_clock;

  /// @param answer called once; what it throws is dropped
  prediction_request(shared_batch feeds, std::int64_t samples,
                     std::function<void(prediction_outcome)> answer)
    : feeds_(std::move(feeds)), samples_(samples), answer_(std::move(answer)) {}
  ~prediction_request();
  prediction_request(const prediction_request&) = delete;
  prediction_request& operator=(const prediction_request&) = delete;

  const feed_map& feeds() const noexcept { return *feeds_; }
  std::int64_t samples() const noexcept { return samples_; }
  clock::time_point arrived() const noexcept { return arrived_; }

  ///@{
  /// Does nothing if it has been answered.
  void answer(prediction_outcome outcome) noexcept;
  void refuse(const error& why) noexcept { answer({{}, why}); }
  ///@}

private:
  shared_batch feeds_;
  std::int64_t samples_;
  std::function<void(prediction_outcome)> answer_;
  clock::time_point arrived_ = clock::now();
};

/// A request, and how it will run.
struct waiting_request {
  std::unique_ptr<prediction_request> request;
  std::shared_ptr<predicting_executor> by; ///< with these parameters
  bool alone = false;         ///< in a step of its own, while no other runs
  bool was_cancelled = false; ///< its last step was
};

/// The requests of one step.
using request_batch = std::vector<waiting_request>;

/// Refuses all of them.
void refuse(const request_batch& batch, const error& why) noexcept;

} // namespace troupe::inference
