// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/inference/waiting_requests.hpp>

#include <troupe/training/inference/merged_batch.hpp>

#include <iterator>
#include <utility>

namespace troupe::inference {

void waiting_requests::add(waiting_request item) {
  samples_ += item.request->samples();
  waiting_.push_back(std::move(item));
}

void waiting_requests::put_back(request_batch batch) {
  for (auto& item : batch)
    samples_ += item.request->samples();
  waiting_.insert(waiting_.begin(), std::make_move_iterator(batch.begin()),
                  std::make_move_iterator(batch.end()));
}

bool waiting_requests::is_full() const {
  return !waiting_.empty()
         && (samples_ >= max_batch_ || waiting_.front().alone);
}

waiting_requests::clock::time_point waiting_requests::due() const {
  return waiting_.front().request->arrived() + max_delay_;
}

request_batch waiting_requests::take() {
  request_batch batch;
  std::deque<waiting_request> others;
  std::int64_t samples = 0;
  bool is_closed = false;
  for (auto& item : waiting_) {
    const auto fits = [&] {
      const auto& first = batch.front();
      return !first.alone && !item.alone && item.by == first.by
             && can_merge(first.request->feeds(), item.request->feeds());
    };
    const auto own = item.request->samples();
    // Behind one of its kind that does not fit, no request overtakes it.
    if (is_closed || (!batch.empty() && !fits())) {
      others.push_back(std::move(item));
    } else if (!batch.empty() && samples + own > max_batch_) {
      is_closed = true;
      others.push_back(std::move(item));
    } else {
      samples += own;
      batch.push_back(std::move(item));
    }
  }
  waiting_ = std::move(others);
  samples_ -= samples;
  return batch;
}

request_batch waiting_requests::take_all() {
  samples_ = 0;
  request_batch all{std::make_move_iterator(waiting_.begin()),
                    std::make_move_iterator(waiting_.end())};
  waiting_.clear();
  return all;
}

} // namespace troupe::inference
