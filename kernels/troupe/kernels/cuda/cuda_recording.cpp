// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/cuda_recording.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/threads.hpp>
#include <troupe/kernels/cuda/gpu_memory.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <thread>

namespace troupe::cuda {

namespace {

/// Recorded work uses memory again that recorded work has returned, so none of
/// it goes back to the driver earlier than all.
class recorded_memory final : public gpu_memory {
public:
  using gpu_memory::gpu_memory;
  ~recorded_memory() override {
    for (auto& [data, bytes] : returned_)
      gpu_memory::deallocate(data, bytes);
  }
  // The arena calls this with its lock held.
  void deallocate(std::byte* data, std::size_t bytes) noexcept override {
    try {
      returned_.emplace_back(data, bytes);
    } catch (const std::bad_alloc&) {
      // The memory is lost. It must not be used for anything else.
    }
  }

private:
  std::vector<std::pair<std::byte*, std::size_t>> returned_;
};

} // namespace

/// Calls functions one after the other.
class capture_thread {
public:
  capture_thread()
    : thread_(start_thread("troupe-capture", [this] { serve(); })) {}
  ~capture_thread() {
    {
      std::lock_guard guard{mutex_};
      closing_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  /// Returns when the function has, and throws what it throws.
  void call(std::function<void()> what) {
    std::unique_lock guard{mutex_};
    what_ = std::move(what);
    changed_.notify_all();
    changed_.wait(guard, [this] { return !what_; });
    if (auto failure = std::exchange(failure_, nullptr))
      std::rethrow_exception(failure);
  }

private:
  void serve() {
    for (std::unique_lock guard{mutex_};;) {
      changed_.wait(guard, [this] { return closing_ || what_; });
      if (!what_)
        return;
      try {
        what_();
      } catch (...) {
        failure_ = std::current_exception();
      }
      what_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_; // guards what follows
  std::condition_variable changed_;
  std::function<void()> what_;
  std::exception_ptr failure_;
  bool closing_ = false;
  std::thread thread_; // last: it uses all others
};

cuda_recording::cuda_recording(std::shared_ptr<device_state> on,
                               std::span<stream* const> streams, arena& pinned)
  : state_(std::move(on)), pinned_(pinned),
    memory_(std::make_unique<recorded_memory>(state_)),
    number_(tensor::make(memory_, {1}, dtype::int32)) {
  for (auto* s : streams)
    streams_.push_back(&stream_of(s));
  for (std::size_t i = 0; i < 2 * streams_.size(); ++i)
    joints_.push_back(state_->api->make_event(state_->gpu));
  thread_ = std::make_unique<capture_thread>();
  try {
    begin();
  } catch (...) {
    stop();
    throw;
  }
}

cuda_recording::~cuda_recording() {
  stop();
  origin().drain();
  graph_.reset();
}

void cuda_recording::begin() {
  for (auto* s : streams_)
    s->begin_recording(*this);
  thread_->call([this] { state_->api->begin_capture(origin().queue()); });
  is_capturing_ = true;
  for (auto* s : streams_)
    join(origin(), *s);
}

/// Lets what one stream records from now on come after what the other one has
/// recorded.
void cuda_recording::join(cuda_stream& before, cuda_stream& after) {
  if (&before == &after)
    return;
  auto& event = *joints_.back();
  state_->api->record(event, before.queue());
  state_->api->wait(after.queue(), event);
  used_joints_.push_back(std::move(joints_.back()));
  joints_.pop_back();
}

void cuda_recording::finish(std::span<value_copy> last) {
  try {
    for (auto* s : streams_)
      join(*s, origin());
    for (auto& each : last)
      copy(each);
    {
      std::lock_guard guard{noting_};
      if (failure_)
        std::rethrow_exception(failure_);
    }
    end();
  } catch (...) {
    stop();
    throw;
  }
  stop();
}

/// Nothing is being recorded then, whatever it throws.
void cuda_recording::end() {
  is_capturing_ = false;
  thread_->call(
    [this] { graph_ = state_->api->end_capture(origin().queue()); });
}

void cuda_recording::stop() noexcept {
  if (!thread_)
    return;
  if (is_capturing_)
    try {
      end();
    } catch (...) {
      // It is given up for another reason.
    }
  for (auto* s : streams_)
    s->end_recording();
  thread_.reset();
}

tensor cuda_recording::source_of(const tensor& result) const {
  const auto found = std::ranges::find(
    sources_, result.raw(), &std::pair<const std::byte*, tensor>::first);
  return found == sources_.end() ? tensor{} : found->second;
}

void cuda_recording::launch(step_id number) {
  auto& on = origin();
  if (wants_number_) {
    // As dropout takes it: the lowest 32 bits.
    const auto word = static_cast<std::uint32_t>(number);
    auto staging = pinned_.allocate(sizeof word);
    std::memcpy(staging.data(), &word, sizeof word);
    on.copy(number_.raw(), staging.data(), sizeof word);
    on.keep(std::move(staging));
  }
  state_->api->launch_graph(on.queue(), *graph_);
}

void cuda_recording::copy(value_copy& values) {
  if (const auto bytes = values.from.bytes())
    origin().copy(values.to.raw(), values.from.raw(), bytes);
}

bool cuda_recording::has(const cuda_stream& s) const noexcept {
  return std::ranges::count(streams_, &s) > 0;
}

void cuda_recording::keep(buffer staging) {
  std::lock_guard guard{noting_};
  kept_.push_back(std::move(staging));
}

const std::uint32_t* cuda_recording::step_number() {
  std::lock_guard guard{noting_};
  wants_number_ = true;
  return reinterpret_cast<const std::uint32_t*>(number_.raw());
}

void cuda_recording::note_source(const tensor& result, tensor source) {
  std::lock_guard guard{noting_};
  sources_.emplace_back(result.raw(), std::move(source));
}

void cuda_recording::fail(std::exception_ptr reason) noexcept {
  std::lock_guard guard{noting_};
  if (!failure_)
    failure_ = std::move(reason);
}

} // namespace troupe::cuda
