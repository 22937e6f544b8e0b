// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/cuda/cuda_stream.hpp>

#include <troupe/base/assert.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/threads.hpp>
#include <troupe/kernels/cuda/cuda_recording.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::cuda {

// -- memory that is used again ------------------------------------------------

void device_state::wait_for(const reuse_mark& mark) {
  auto* const on = cuda_stream::current();
  std::lock_guard guard{
    listing}; // no stream of the list is destroyed meanwhile
  for (auto* s : streams) {
    const auto concerned =
      mark.stream == reuse_mark::several || mark.stream == s->number();
    if (s == on || !concerned)
      continue;
    if (on)
      on->order_after(*s, mark.position);
    else
      s->synchronize(mark.position);
  }
}

cuda_stream::scope::scope(cuda_stream& on) noexcept
  : on_(on), before_(std::exchange(current_, &on)) {
  std::lock_guard guard{on.mutex_};
  ++on.queueing_;
}

cuda_stream::scope::~scope() {
  on_.advance();
  current_ = before_;
  std::lock_guard guard{on_.mutex_};
  --on_.queueing_;
}

// -- the stream ---------------------------------------------------------------

cuda_stream::cuda_stream(std::shared_ptr<device_state> on,
                         const stream_options& options)
  : state_(std::move(on)), name_(options.name),
    queue_(state_->api->make_queue(state_->gpu, options.yields)) {
  std::lock_guard guard{state_->listing};
  number_ = ++state_->last_number;
  state_->streams.push_back(this);
}

// Once the stream is not listed any more, nobody waits for it. All of its work
// is done then, so memory with its marks can be used at once.
cuda_stream::~cuda_stream() {
  {
    std::lock_guard guard{mutex_};
    closing_ = true;
    noticed_.notify_all();
  }
  if (thread_.joinable())
    thread_.join();
  drain();
  std::lock_guard guard{state_->listing};
  std::erase(state_->streams, this);
}

// A failed launch may have queued part of its work. The launcher then releases
// the memory, so this waits for what is queued.
launch_result cuda_stream::launch(work& w, const launch_options& wanted) {
  if (recording_)
    return record_launch(w, wanted);
  try {
    const scope here{*this};
    w.execute(*this);
  } catch (...) {
    drain();
    staged_.clear();
    throw;
  }
  const auto position = this->position();
  if (!wanted.tell_completion && staged_.empty()) {
    if (wanted.give_position)
      try {
        event_at(position);
      } catch (...) {
        // Whoever waits tries again. The work itself is queued.
      }
    return {launch_status::pending, position};
  }
  try {
    add_notice(&w, wanted.tell_completion, std::exchange(staged_, {}));
  } catch (...) {
    drain();
    throw;
  }
  return {launch_status::pending, position};
}

// Nothing runs, so there is nothing to wait for when a launch fails, and nobody
// has to learn later that one is complete.
launch_result cuda_stream::record_launch(work& w,
                                         const launch_options& wanted) {
  {
    const scope here{*this};
    w.execute(*this);
  }
  const auto position = this->position();
  if (wanted.give_position)
    event_at(position, recording_);
  return {launch_status::done, position};
}

// If the device itself is at fault, the work that follows finds out.
void cuda_stream::wait(stream& producer, ticket position) noexcept {
  auto& from = stream_of(&producer);
  try {
    order_after(from, position);
  } catch (...) {
    if (recording_)
      recording_->fail(std::current_exception());
    from.drain();
  }
}

void cuda_stream::order_after(cuda_stream& producer, ticket position) {
  if (position == 0 || &producer == this)
    return;
  // A recorded wait is always an event. What is not recorded must be over.
  const bool by_event = recording_
                          ? recording_->has(producer)
                          : state_->options.waits_by == wait_mode::event;
  if (!by_event)
    producer.synchronize(position);
  else if (const auto event = producer.event_at(position, recording_))
    api().wait(*queue_, *event);
  advance();
}

bool cuda_stream::can_wait_for(const stream& producer) const noexcept {
  return dynamic_cast<const cuda_stream*>(&producer) != nullptr;
}

ticket cuda_stream::position() const noexcept {
  std::lock_guard guard{mutex_};
  return queued_;
}

bool cuda_stream::finished(ticket position) const noexcept {
  try {
    const auto event = event_at(position);
    return !event || api().reached(*event);
  } catch (const error&) {
    return true; // a device that has failed does nothing any more
  }
}

void cuda_stream::synchronize(ticket position) {
  if (const auto event = event_at(position))
    api().synchronize(*event);
  std::unique_lock guard{mutex_};
  noticed_.wait(guard, [&] {
    return notices_.empty() || notices_.front().position > position;
  });
}

// The copy is queued: the memory must be kept even if no event can be recorded.
void cuda_stream::keep(buffer staging) {
  if (recording_)
    return recording_->keep(std::move(staging));
  std::lock_guard guard{mutex_};
  kept_.emplace_back(nullptr, std::move(staging));
  kept_.back().first = record();
  std::size_t done = 0;
  for (std::size_t i = 0; i < kept_.size(); ++i)
    if (const auto& event = kept_[i].first) {
      if (!api().reached(*event))
        break;
      done = i + 1;
    }
  for (; done > 0; --done) {
    if (kept_.front().first)
      spare_.push_back(std::move(kept_.front().first));
    kept_.pop_front();
  }
}

void cuda_stream::notify(completion& whole) {
  advance();
  add_notice(&whole, true, {});
}

// Grids beyond some blocks per multiprocessor gain nothing, so the threads of a
// large tensor take several elements.
launch_shape cuda_stream::shape_for(std::int64_t count) noexcept {
  constexpr std::int64_t most_blocks = 2048;
  const auto blocks = (count + most_threads - 1) / most_threads;
  return {static_cast<std::uint32_t>(std::min(blocks, most_blocks)),
          most_threads};
}

ticket cuda_stream::advance() {
  std::lock_guard guard{mutex_};
  queued_ = state_->last_position.fetch_add(1, std::memory_order_relaxed) + 1;
  return queued_;
}

// -- events -------------------------------------------------------------------

/// An event that is reached no earlier than the position; null if the position
/// has been reached. A position that is not given out yet means all that is
/// queued now. While work is recorded, only others of the recording have
/// something to wait for.
cuda_stream::shared_event
cuda_stream::event_at(ticket position, const cuda_recording* asking) const {
  std::lock_guard guard{mutex_};
  if (position <= reached_ || recording_ != asking)
    return nullptr;
  if (!recording_)
    drop_reached();
  if (position <= reached_ || (queueing_ == 0 && queued_ <= reached_))
    return nullptr;
  const auto found = std::ranges::lower_bound(
    events_, position, {}, &std::pair<ticket, shared_event>::first);
  if (found != events_.end())
    return found->second;
  auto made = record();
  // Work that is being executed has no position yet, so the event stands for
  // the last one that is given out.
  events_.emplace_back(queued_, made);
  return made;
}

/// Called with the lock held.
cuda_stream::shared_event cuda_stream::record() const {
  shared_event event;
  if (!spare_.empty() && spare_.back().use_count() == 1) {
    event = std::move(spare_.back());
    spare_.pop_back();
  } else {
    event = api().make_event(state_->gpu);
  }
  api().record(*event, *queue_);
  return event;
}

/// Called with the lock held.
void cuda_stream::drop_reached() const {
  while (!events_.empty() && api().reached(*events_.front().second)) {
    reached_ = std::max(reached_, events_.front().first);
    spare_.push_back(std::move(events_.front().second));
    events_.pop_front();
  }
}

// -- completions --------------------------------------------------------------

void cuda_stream::add_notice(completion* whole, bool tells_success,
                             std::vector<staged_copy> copies) {
  std::lock_guard guard{mutex_};
  if (!thread_.joinable())
    thread_ = start_thread("troupe-cuda", [this] { serve_notices(); });
  notices_.push_back(
    {queued_, record(), whole, tells_success, std::move(copies)});
  noticed_.notify_all();
}

void cuda_stream::serve_notices() {
  for (std::unique_lock guard{mutex_};;) {
    noticed_.wait(guard, [this] { return closing_ || !notices_.empty(); });
    if (notices_.empty())
      return;
    auto& next = notices_.front(); // stays in place: others only push
    guard.unlock();
    end(next);
    guard.lock();
    spare_.push_back(std::move(next.event));
    notices_.pop_front();
    noticed_.notify_all();
  }
}

void cuda_stream::end(notice& n) noexcept {
  std::exception_ptr failure;
  try {
    api().synchronize(*n.event);
    for (auto& c : n.copies)
      std::memcpy(c.to.raw(), c.staging.data(), c.to.bytes());
    throw_fault();
  } catch (...) {
    failure = std::current_exception();
    drain(); // memory is released next
  }
  {
    std::lock_guard guard{mutex_}; // before anyone is told
    reached_ = std::max(reached_, n.position);
  }
  n.copies.clear();
  if (n.tells_success || failure)
    n.whole->completed(std::move(failure));
}

void cuda_stream::throw_fault() {
  auto& report = *state_->fault;
  const std::uint32_t none = fault_report::none;
  const auto found = __atomic_exchange_n(&report.what, none, __ATOMIC_ACQUIRE);
  const auto value = std::to_string(report.value);
  const auto limit = std::to_string(report.limit);
  if (found == fault_report::bad_label)
    throw error(errc::out_of_range,
                "label " + value + " of " + limit + " classes");
  if (found == fault_report::bad_index)
    throw error(errc::out_of_range,
                "index " + value + " is not in [0, " + limit + ")");
}

void cuda_stream::read(void* to, const std::byte* from, std::size_t bytes) {
  if (recording_)
    throw error(errc::unsupported_op,
                "the host waits for a number that the GPU computes");
  const auto give_back = [&](std::byte* data) {
    api().deallocate_pinned(data);
  };
  const std::unique_ptr<std::byte, decltype(give_back)> staging(
    api().allocate_pinned(bytes), give_back);
  if (!staging)
    throw error(errc::out_of_memory, "no pinned host memory");
  copy(staging.get(), from, bytes);
  api().synchronize(*queue_);
  std::memcpy(to, staging.get(), bytes);
}

void cuda_stream::begin_recording(cuda_recording& to) {
  api().synchronize(*queue_);
  std::lock_guard guard{mutex_};
  for (auto& event : events_)
    spare_.push_back(std::move(event.second));
  events_.clear();
  reached_ = queued_;
  recording_ = &to;
}

// Positions of recorded work are nothing to wait for.
void cuda_stream::end_recording() noexcept {
  std::lock_guard guard{mutex_};
  if (!recording_)
    return;
  events_.clear();
  reached_ = queued_;
  recording_ = nullptr;
}

const std::uint32_t* cuda_stream::step_number() const {
  return recording_ ? recording_->step_number() : nullptr;
}

void cuda_stream::drain() noexcept {
  if (recording_)
    return;
  try {
    api().synchronize(*queue_);
  } catch (...) {
    // The device has failed: nothing runs any more.
  }
}

cuda_stream& stream_of(const stream* queue) {
  auto* const found =
    const_cast<cuda_stream*>(dynamic_cast<const cuda_stream*>(queue));
  if (!found)
    throw error(errc::invalid_argument,
                "a CUDA device was given a stream of another kind");
  return *found;
}

} // namespace troupe::cuda
