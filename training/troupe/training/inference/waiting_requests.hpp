// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/training/inference/prediction_request.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace troupe::inference {

/// Requests in the order in which they came, and which of them are the next
/// step. Time is passed in.
///
/// Thread rule: one thread at a time.
class waiting_requests {
public:
  using clock = prediction_request::clock;

  /// @param max_batch,max_delay as in `predictor_options`
  waiting_requests(std::int64_t max_batch, std::chrono::microseconds max_delay)
    : max_batch_(max_batch), max_delay_(max_delay) {}

  void add(waiting_request item);
  /// Puts requests that have begun before all others again.
  void put_back(request_batch batch);

  bool empty() const noexcept { return waiting_.empty(); }
  std::size_t size() const noexcept { return waiting_.size(); }
  /// True if waiting longer cannot make the next step fuller.
  bool is_full() const;
  /// When the next step is due, if it does not become full before. Not if
  /// nothing waits.
  clock::time_point due() const;
  /// True if the next request runs alone. Not if nothing waits.
  bool next_is_alone() const { return waiting_.front().alone; }
  /// Removes the requests of the next step: the oldest one, and those behind it
  /// that fit. Not if nothing waits.
  request_batch take();
  /// Removes all.
  request_batch take_all();

private:
  std::int64_t max_batch_;
  std::chrono::microseconds max_delay_;
  std::deque<waiting_request> waiting_;
  std::int64_t samples_ = 0; // of all
};

} // namespace troupe::inference
