// SPDX-License-Identifier: Apache-2.0
#include <support/late_device.hpp>

#include <troupe/base/random.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::test {

namespace {

void pause(splitmix64& draw, std::uint32_t max_us) {
  if (max_us > 0)
    std::this_thread::sleep_for(
      std::chrono::microseconds(draw.below(max_us + 1)));
}

/// Reports completions late and in a drawn order.
class completion_thread {
public:
  completion_thread(std::uint64_t seed, std::uint32_t max_delay_us)
    : draw_(seed), max_delay_us_(max_delay_us), thread_([this] { loop(); }) {}

  ~completion_thread() {
    {
      std::lock_guard guard{mutex_};
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void report(work& w, std::exception_ptr failure) {
    {
      std::lock_guard guard{mutex_};
      waiting_.emplace_back(&w, std::move(failure));
    }
    changed_.notify_all();
  }

private:
  void loop() {
    std::unique_lock guard{mutex_};
    for (;;) {
      changed_.wait(guard, [this] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty())
        return;
      guard.unlock();
      pause(draw_, max_delay_us_); // more may come, to choose among
      guard.lock();
      const auto i = static_cast<long>(draw_.below(waiting_.size()));
      auto [w, failure] = std::move(waiting_[static_cast<std::size_t>(i)]);
      waiting_.erase(waiting_.begin() + i);
      guard.unlock();
      w->completed(std::move(failure));
      guard.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<work*, std::exception_ptr>> waiting_;
  bool stopping_ = false;
  splitmix64 draw_;
  std::uint32_t max_delay_us_;
  std::thread thread_;
};

class late_stream final : public stream {
public:
  late_stream(std::string name, std::uint64_t seed, std::uint32_t max_delay_us)
    : name_(std::move(name)), draw_(seed), max_delay_us_(max_delay_us),
      completions_(seed + 1, max_delay_us), thread_([this] { loop(); }) {}

  ~late_stream() override {
    {
      std::lock_guard guard{mutex_};
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const std::string& name() const noexcept override { return name_; }
  int width() const noexcept override { return 1; }

  launch_result launch(work& w, const launch_options& wanted) override {
    std::lock_guard guard{mutex_};
    queue_.push_back({&w, nullptr, 0, wanted.tell_completion});
    changed_.notify_all();
    return {launch_status::pending, ++queued_};
  }

  void wait(stream& producer, ticket position) override {
    if (position == 0)
      return;
    std::lock_guard guard{mutex_};
    queue_.push_back({nullptr, &producer, position, false});
    ++queued_;
    changed_.notify_all();
  }

  bool can_wait_for(const stream& producer) const noexcept override {
    return dynamic_cast<const late_stream*>(&producer) != nullptr;
  }

  ticket position() const noexcept override {
    std::lock_guard guard{mutex_};
    return queued_;
  }

  bool finished(ticket position) const noexcept override {
    std::lock_guard guard{mutex_};
    return done_ >= position;
  }

  void synchronize(ticket position) override {
    std::unique_lock guard{mutex_};
    changed_.wait(guard, [&] { return done_ >= position; });
  }

private:
  /// Work to run, or a position of another stream to wait for.
  struct entry {
    work* run;
    stream* producer;
    ticket position;
    bool tell_completion;
  };

  void loop() {
    for (;;) {
      entry next;
      {
        std::unique_lock guard{mutex_};
        changed_.wait(guard, [this] { return stopping_ || !queue_.empty(); });
        if (queue_.empty())
          return;
        next = queue_.front();
        queue_.pop_front();
      }
      if (next.producer) {
        next.producer->synchronize(next.position);
        reach_next();
      } else {
        run(*next.run, next.tell_completion);
      }
    }
  }

  void reach_next() {
    {
      std::lock_guard guard{mutex_};
      ++done_;
    }
    changed_.notify_all();
  }

  void run(work& w, bool tell_completion) {
    pause(draw_, max_delay_us_);
    std::exception_ptr failure;
    try {
      w.execute(*this);
    } catch (...) {
      failure = std::current_exception();
    }
    reach_next();
    if (tell_completion || failure)
      completions_.report(w, std::move(failure));
  }

  std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<entry> queue_;
  ticket queued_ = 0;
  ticket done_ = 0;
  bool stopping_ = false;
  splitmix64 draw_; // the stream's thread
  std::uint32_t max_delay_us_;
  completion_thread completions_;
  std::thread thread_; // last: it uses all the others
};

class late_device final : public device {
public:
  late_device(int index, std::uint64_t seed, std::uint32_t max_delay_us)
    : cpu_(make_cpu_device(index)), draw_(seed), max_delay_us_(max_delay_us) {}

  device_id id() const noexcept override { return cpu_->id(); }
  arena& memory() noexcept override { return cpu_->memory(); }
  std::unique_ptr<stream> make_stream(const stream_options& o) override {
    return std::make_unique<late_stream>(o.name, draw_(), max_delay_us_);
  }
  tensor to_host(const tensor& value, arena& host) override {
    return cpu_->to_host(value, host);
  }
  tensor to_device(const tensor& host_value) override {
    return cpu_->to_device(host_value);
  }

private:
  std::unique_ptr<device> cpu_;
  splitmix64 draw_;
  std::uint32_t max_delay_us_;
};

} // namespace

std::shared_ptr<device> make_late_device(int index, std::uint64_t seed,
                                         std::uint32_t max_delay_us) {
  return std::make_shared<late_device>(index, seed, max_delay_us);
}

} // namespace troupe::test
