// SPDX-License-Identifier: Apache-2.0
#include <troupe/training/data/generator_source.hpp>

#include <troupe/base/error.hpp>

#include <string>
#include <utility>

namespace troupe {

namespace {

generated_batches checked(generated_batches form) {
  if (form.steps_per_epoch == 0)
    throw error(errc::invalid_argument, "an epoch has no steps");
  if (form.batch < 1)
    throw error(errc::invalid_argument,
                "batch " + std::to_string(form.batch) + " is below 1");
  return form;
}

class generator_source final : public batch_source {
public:
  generator_source(batch_function make, generated_batches form)
    : make_(std::move(make)), form_(checked(form)) {
    if (!make_)
      throw error(errc::invalid_argument, "no function that makes batches");
  }

  std::uint64_t steps_per_epoch() const override {
    return form_.steps_per_epoch;
  }
  std::int64_t batch_samples(std::uint64_t) const override {
    return form_.batch;
  }
  feed_map batch(std::uint64_t epoch, std::uint64_t index) override {
    return make_(epoch, index);
  }

private:
  batch_function make_;
  generated_batches form_;
};

} // namespace

std::unique_ptr<batch_source> make_generator_source(batch_function make,
                                                    generated_batches form) {
  return std::make_unique<generator_source>(std::move(make), form);
}

batch_queue::batch_queue(generated_batches form, std::size_t most)
  : form_(checked(form)), most_(most) {
  if (most == 0)
    throw error(errc::invalid_argument, "a queue without room for a batch");
}

bool batch_queue::push(feed_map batch) {
  {
    std::unique_lock guard{mutex_};
    changed_.wait(guard,
                  [this] { return is_closed_ || waiting_.size() < most_; });
    if (is_closed_)
      return false;
    waiting_.push_back(std::move(batch));
  }
  changed_.notify_all();
  return true;
}

bool batch_queue::try_push(feed_map& batch) {
  {
    std::lock_guard guard{mutex_};
    if (is_closed_ || waiting_.size() >= most_)
      return false;
    waiting_.push_back(std::move(batch));
  }
  changed_.notify_all();
  return true;
}

void batch_queue::close() {
  {
    std::lock_guard guard{mutex_};
    is_closed_ = true;
  }
  changed_.notify_all();
}

std::uint64_t batch_queue::steps_per_epoch() const {
  return form_.steps_per_epoch;
}

std::int64_t batch_queue::batch_samples(std::uint64_t) const {
  return form_.batch;
}

bool batch_queue::has_ended() {
  std::unique_lock guard{mutex_};
  changed_.wait(guard, [this] { return is_closed_ || !waiting_.empty(); });
  return waiting_.empty();
}

feed_map batch_queue::batch(std::uint64_t, std::uint64_t) {
  std::unique_lock guard{mutex_};
  changed_.wait(guard, [this] { return is_closed_ || !waiting_.empty(); });
  if (waiting_.empty())
    throw error(errc::cancelled, "the queue of batches is closed");
  auto next = std::move(waiting_.front());
  waiting_.pop_front();
  guard.unlock();
  changed_.notify_all();
  return next;
}

} // namespace troupe
