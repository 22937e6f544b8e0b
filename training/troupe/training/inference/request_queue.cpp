// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/inference/request_queue.hpp>

#include <troupe/base/error.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace troupe::inference {

namespace {

/// Times that are due must not overflow.
constexpr std::chrono::hours longest_delay{24};

void require_batch_axis(const graph::program& program, const char* what,
                        const std::string& name) {
  const auto& dims = program.main().var(name).dims;
  if (dims.rank() > 0 && dims[0] < 0)
    return;
  throw error(errc::invalid_argument,
              std::string{"requests cannot be merged: "} + what + " has shape "
                + to_string(dims)
                + ", without the batch on axis 0; with max_batch = 1 each "
                  "request runs alone",
              {.variable = name});
}

void check_merging(const graph::program& program,
                   const std::vector<std::string>& feeds,
                   const predictor_options& options) {
  if (options.max_batch == 1)
    return;
  for (auto& name : feeds)
    require_batch_axis(program, "the feed", name);
  for (auto& name : options.outputs)
    require_batch_axis(program, "the output", name);
}

void check_options(const predictor_options& options) {
  if (options.most_waiting == 0)
    throw error(errc::invalid_argument,
                "a predictor for which nothing may wait");
  if (options.executor.nodes)
    throw error(errc::invalid_argument,
                "a predictor runs in one process, but the options split its "
                "executor over several");
  if (options.max_batch < 1)
    throw error(errc::invalid_argument, "max_batch is "
                                          + std::to_string(options.max_batch)
                                          + ", but must be at least 1");
  if (options.max_delay.count() < 0 || options.max_delay > longest_delay)
    throw error(errc::invalid_argument,
                "max_delay is " + std::to_string(options.max_delay.count())
                  + " us, but must be from 0 to a day");
}

} // namespace

request_queue::request_queue(std::shared_ptr<const graph::program> program,
                             const predictor_options& options)
  : program_(std::move(program)),
    needed_(graph::feed_names(*program_), program_->main()),
    devices_(options.executor.devices.size()),
    most_waiting_(options.most_waiting),
    waiting_(options.max_batch, options.max_delay) {
  check_options(options);
  check_merging(*program_, needed_.names, options);
}

void request_queue::open(std::shared_ptr<predicting_executor> first,
                         std::function<void()> tell) {
  now_ = std::move(first);
  tell_ = std::move(tell);
}

void request_queue::close(const error& why) {
  request_batch waited;
  std::shared_ptr<predicting_executor> last;
  {
    std::lock_guard guard{mutex_};
    closed_ = why;
    waited = waiting_.take_all();
    last = std::move(now_);
  }
  refuse(waited, why);
}

void request_queue::ends() {
  std::lock_guard guard{mutex_};
  has_ended_ = true;
  end_.notify_all(); // under the lock: who waits may then destroy the queue
}

void request_queue::wait_for_end() const {
  std::unique_lock lock{mutex_};
  end_.wait(lock, [&] { return has_ended_; });
}

void request_queue::use(std::shared_ptr<predicting_executor> by) {
  std::lock_guard guard{mutex_};
  if (closed_)
    throw *closed_;
  now_.swap(by); // the old one is destroyed after the lock is given up
}

std::int64_t request_queue::check(const shared_batch& feeds) const {
  if (!feeds)
    throw error(errc::invalid_argument, "a request without feeds");
  for (auto& [name, value] : *feeds)
    if (actors::feeds_persistable(program_->main(), name))
      throw error(errc::invalid_argument, "a request cannot set a parameter",
                  {.variable = name});
  return actors::check_feeds(*feeds, needed_, program_->main(), devices_);
}

void request_queue::add(shared_batch feeds,
                        std::function<void(prediction_outcome)> answer) {
  const auto samples = check(feeds);
  bool tells = false;
  {
    std::lock_guard guard{mutex_};
    if (closed_)
      throw *closed_;
    if (waiting_.size() >= most_waiting_) {
      ++counts_.refused;
      throw error(errc::busy, std::to_string(most_waiting_)
                                + " requests wait already, as many as may");
    }
    waiting_.add({std::make_unique<prediction_request>(
                    std::move(feeds), samples, std::move(answer)),
                  now_});
    ++counts_.requests;
    tells = has_to_tell();
  }
  if (tells)
    tell_();
}

std::shared_ptr<predicting_executor> request_queue::now() const {
  std::lock_guard guard{mutex_};
  return now_;
}

/// Once per look of the predictor.
bool request_queue::has_to_tell() {
  if (listens_ == listening::not_at_all
      || (listens_ == listening::to_full && !waiting_.is_full()))
    return false;
  listens_ = listening::not_at_all;
  return true;
}

next_step request_queue::next(bool is_free, bool is_idle) {
  std::lock_guard guard{mutex_};
  listens_ = listening::not_at_all;
  if (!is_free)
    return {};
  if (waiting_.empty()) {
    listens_ = listening::to_any;
    return {};
  }
  if (waiting_.next_is_alone() && !is_idle)
    return {};
  if (waiting_.is_full() || waiting_.due() <= waiting_requests::clock::now())
    return {waiting_.take(), {}};
  listens_ = listening::to_full;
  return {{}, waiting_.due()};
}

void request_queue::put_back(request_batch batch) {
  std::lock_guard guard{mutex_};
  waiting_.put_back(std::move(batch));
}

void request_queue::step_ended() {
  std::lock_guard guard{mutex_};
  ++counts_.steps;
}

bool request_queue::empty() const {
  std::lock_guard guard{mutex_};
  return waiting_.empty();
}

prediction_counts request_queue::counts() const {
  std::lock_guard guard{mutex_};
  auto counts = counts_;
  counts.waiting = waiting_.size();
  return counts;
}

} // namespace troupe::inference
