// SPDX-License-Identifier: Apache-2.0
#include <troupe/kernels/sim/sim_device.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/cores.hpp>
#include <troupe/base/random.hpp>
#include <troupe/base/spin.hpp>
#include <troupe/base/threads.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

namespace {

void pause(splitmix64& draw, std::uint32_t max_us) {
  if (max_us > 0)
    std::this_thread::sleep_for(
      std::chrono::microseconds(draw.below(max_us + 1)));
}

/// An empty list that has room for more entries than a small net queues at
/// once. A steady step then allocates nothing here.
template <class T>
std::vector<T> with_room() {
  std::vector<T> list;
  list.reserve(256);
  return list;
}

/// Reports completions late and in a random order.
class completion_thread {
public:
  completion_thread(std::uint64_t seed, std::uint32_t max_delay_us)
    : draw_(seed), max_delay_us_(max_delay_us),
      thread_(start_thread("troupe-sim", [this] { loop(); })) {}

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
      pause(draw_, max_delay_us_); // more may come to choose from
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
  std::vector<std::pair<work*, std::exception_ptr>> waiting_ =
    with_room<std::pair<work*, std::exception_ptr>>();
  bool stopping_ = false;
  splitmix64 draw_;
  std::uint32_t max_delay_us_;
  std::thread thread_;
};

class sim_stream;

/// A copy that is done later. It holds the memory of both tensors until then.
struct queued_copy {
  tensor from;
  tensor to;

  void run() {
    if (!from.is_plain())
      from.format()->to_plain(from, to, nullptr);
    else if (const auto bytes = from.bytes())
      std::memcpy(to.raw(), from.raw(), bytes);
  }
};

/// An entry of a stream's queue: work to run, a copy, or a position of another
/// stream to wait for. With none of them, it only advances the stream's
/// position.
struct queued_entry {
  sim_stream* of = nullptr;
  work* run = nullptr;
  std::unique_ptr<queued_copy> copy = nullptr;
  stream* producer = nullptr;
  ticket position = 0; ///< of the producer
  bool tell_completion = false;
  std::string_view op_type = {}; ///< of the work
};

/// The queue of one or several streams. Their thread takes all entries at once.
class launch_queue {
public:
  /// @param look_ns how long the thread polls an empty queue before it sleeps
  explicit launch_queue(std::uint64_t look_ns) : look_ns_(look_ns) {}

  void push(queued_entry e) {
    bool wakes = false;
    {
      std::lock_guard guard{lock_};
      entries_.push_back(std::move(e));
      filled_.store(true, std::memory_order_relaxed);
      wakes = sleeps_;
    }
    if (wakes)
      changed_.notify_one();
  }

  /// Entries pushed before are still taken.
  void close() {
    {
      std::lock_guard guard{lock_};
      closed_ = true;
      filled_.store(true, std::memory_order_relaxed);
    }
    changed_.notify_one();
  }

  /// Waits for entries and moves them to `taken`. False: closed and empty.
  bool take(std::vector<queued_entry>& taken) {
    taken.clear();
    look_for_entries();
    std::unique_lock guard{lock_};
    sleeps_ = true;
    changed_.wait(guard, [this] { return closed_ || !entries_.empty(); });
    sleeps_ = false;
    std::swap(taken, entries_);
    filled_.store(closed_, std::memory_order_relaxed);
    return !taken.empty();
  }

private:
  // Each look takes a cache line away from the launching thread, so the thread
  // pauses about 1 us before each. It then lets another thread have the core:
  // with more devices and workers than cores, what it looks for may come from a
  // thread that waits for this one's core.
  void look_for_entries() const {
    constexpr int relaxes_before_look = 64;
    if (look_ns_ == 0)
      return;
    const auto until = now_ns() + look_ns_;
    do {
      for (int i = 0; i < relaxes_before_look; ++i)
        relax();
      std::this_thread::yield();
    } while (!filled_.load(std::memory_order_relaxed) && now_ns() < until);
  }

  const std::uint64_t look_ns_;
  std::condition_variable_any changed_;
  // These share one cache line. The lock guards the others. It is no mutex,
  // because that would put launching threads to sleep.
  alignas(64) spin_flag lock_;
  bool sleeps_ = false;
  bool closed_ = false;
  /// True if there are entries or the queue is closed. Relaxed: without the
  /// lock it is only a hint.
  std::atomic<bool> filled_{false};
  std::vector<queued_entry> entries_ = with_room<queued_entry>();
};

/// The position that a stream has reached.
class stream_progress {
public:
  bool has_reached(ticket position) const noexcept {
    return done_.load(std::memory_order_acquire) >= position;
  }

  /// Advances by one position. Called by the stream's thread.
  void advance() {
    // Sequentially consistent, as in `wait_for`: either this thread sees the
    // awaited position, or the waiting thread sees this one.
    const auto now = done_.load(std::memory_order_relaxed) + 1;
    done_.store(now);
    if (now < awaited_.load())
      return;
    {
      std::lock_guard guard{mutex_};
      awaited_.store(nothing);
    }
    changed_.notify_all();
  }

  void wait_for(ticket position) {
    if (has_reached(position))
      return;
    std::unique_lock guard{mutex_};
    for (;;) {
      awaited_.store(std::min(awaited_.load(), position));
      if (done_.load() >= position)
        return;
      changed_.wait(guard);
    }
  }

private:
  static constexpr ticket nothing = ~ticket{0};

  alignas(64) std::atomic<ticket> done_{0};
  std::atomic<ticket> awaited_{nothing}; // the lowest; written under the mutex
  std::mutex mutex_;
  std::condition_variable changed_;
};

/// Runs the entries that streams have queued.
class stream_thread {
public:
  explicit stream_thread(std::uint64_t look_ns)
    : queue_(look_ns), thread_(start_thread("troupe-sim", [this] { loop(); })) {
  }
  ~stream_thread() {
    queue_.close();
    thread_.join();
  }
  void push(queued_entry e) { queue_.push(std::move(e)); }

private:
  void loop();

  launch_queue queue_;
  std::thread thread_;
};

class sim_stream final : public stream {
public:
  sim_stream(std::string name, const sim_times& times, std::uint64_t seed,
             std::shared_ptr<stream_thread> on)
    : name_(std::move(name)), draw_(seed), times_(times),
      thread_(std::move(on)) {
    if (times.max_delay_us > 0)
      completions_.emplace(seed + 1, times.max_delay_us);
  }

  ~sim_stream() override {
    push({.of = this});
    std::unique_lock guard{leaving_};
    left_.wait(guard, [this] { return has_left_; });
  }

  const std::string& name() const noexcept override { return name_; }
  int width() const noexcept override { return 1; }

  launch_result launch(work& w, const launch_options& wanted) override {
    return {launch_status::pending,
            push({.of = this,
                  .run = &w,
                  .tell_completion = wanted.tell_completion,
                  .op_type = wanted.op_type})};
  }

  void wait(stream& producer, ticket position) noexcept override {
    if (position == 0)
      return;
    try {
      push({.of = this, .producer = &producer, .position = position});
    } catch (const std::bad_alloc&) {
      producer.synchronize(position);
    }
  }

  bool can_wait_for(const stream& producer) const noexcept override {
    return dynamic_cast<const sim_stream*>(&producer) != nullptr;
  }

  ticket position() const noexcept override {
    return queued_.load(std::memory_order_relaxed);
  }
  bool finished(ticket position) const noexcept override {
    return progress_.has_reached(position);
  }
  void synchronize(ticket position) override { progress_.wait_for(position); }

  /// Copies plain memory later: at the end of the work that this thread runs
  /// here, otherwise after what has been launched. Until then the target holds
  /// what no reader expects.
  void copy(tensor from, const tensor& to) {
    constexpr int not_copied_yet = 0xff; // as a number: NaN or -1
    auto queued = std::make_unique<queued_copy>(std::move(from), to);
    if (const auto bytes = to.bytes())
      std::memset(queued->to.raw(), not_copied_yet, bytes);
    if (running_ == this)
      copies_.push_back(std::move(queued));
    else
      push({.of = this, .copy = std::move(queued), .op_type = name_});
  }

  /// Called by the stream's thread.
  void execute(queued_entry& e) {
    if (e.run) {
      run(e);
    } else if (e.copy) {
      run_copy(e);
    } else if (e.producer) {
      e.producer->synchronize(e.position);
      progress_.advance();
    } else {
      leave();
    }
  }

private:
  // Called by one thread at a time.
  ticket push(queued_entry e) {
    const auto position = queued_.load(std::memory_order_relaxed) + 1;
    queued_.store(position, std::memory_order_relaxed);
    try {
      thread_->push(std::move(e));
    } catch (...) {
      queued_.store(position - 1, std::memory_order_relaxed);
      throw;
    }
    return position;
  }

  void run(const queued_entry& e) {
    auto& w = *e.run;
    pause(draw_, times_.max_delay_us);
    const auto begin = now_ns();
    std::exception_ptr failure;
    try {
      running_ = this;
      w.execute(*this);
    } catch (...) {
      failure = std::current_exception();
    }
    running_ = nullptr;
    wait_until_end(begin, e.op_type);
    finish_copies(failure);
    progress_.advance();
    if (!e.tell_completion && !failure)
      return;
    if (completions_)
      completions_->report(w, std::move(failure));
    else
      w.completed(std::move(failure));
  }

  void finish_copies(std::exception_ptr& failure) {
    try {
      for (auto& c : copies_)
        c->run();
    } catch (...) {
      if (!failure)
        failure = std::current_exception();
    }
    copies_.clear();
  }

  // The copy of a plain tensor, which cannot fail.
  void run_copy(queued_entry& e) {
    pause(draw_, times_.max_delay_us);
    wait_until_end(now_ns(), e.op_type);
    e.copy->run();
    e.copy.reset();
    progress_.advance();
  }

  /// Work that the table has a time for ends so long after it began.
  void wait_until_end(std::uint64_t begin_ns, std::string_view op_type) const {
    const auto found = times_.us_of_op.find(op_type);
    if (found == times_.us_of_op.end())
      return;
    const auto end_ns = begin_ns + std::uint64_t{found->second} * 1000;
    if (const auto now = now_ns(); now < end_ns)
      std::this_thread::sleep_for(std::chrono::nanoseconds(end_ns - now));
  }

  // Notifies under the mutex: once it is released, the stream may be gone.
  void leave() {
    std::lock_guard guard{leaving_};
    has_left_ = true;
    left_.notify_one();
  }

  /// The stream whose work this thread runs.
  static inline constinit thread_local const sim_stream* running_ = nullptr;

  std::string name_;
  splitmix64 draw_;                                  // the stream's thread
  std::vector<std::unique_ptr<queued_copy>> copies_; // the stream's thread
  const sim_times& times_;
  // relaxed: a launch orders whatever it announces
  std::atomic<ticket> queued_{0};
  stream_progress progress_;
  std::optional<completion_thread> completions_;
  std::mutex leaving_;
  std::condition_variable left_;
  bool has_left_ = false;
  std::shared_ptr<stream_thread> thread_;
};

void stream_thread::loop() {
  for (auto taken = with_room<queued_entry>(); queue_.take(taken);)
    for (auto& e : taken)
      e.of->execute(e);
}

/// Host memory that is said to be a device's, so that whoever forgets a copy is
/// found.
class sim_memory final : public memory_source {
public:
  std::byte* allocate(std::size_t bytes) noexcept override {
    return host_->allocate(bytes);
  }
  void deallocate(std::byte* data, std::size_t bytes) noexcept override {
    host_->deallocate(data, bytes);
  }
  bool resize(std::byte* data, std::size_t bytes,
              std::size_t wanted) noexcept override {
    return host_->resize(data, bytes, wanted);
  }
  void discard(std::byte* data, std::size_t bytes) noexcept override {
    host_->discard(data, bytes);
  }
  std::string limit() const override { return host_->limit(); }
  bool is_host() const noexcept override { return false; }

private:
  std::unique_ptr<memory_source> host_ = make_host_memory_source();
};

class sim_device final : public device {
public:
  sim_device(device_id id, sim_times times)
    : id_(id), memory_(std::make_unique<sim_memory>()),
      times_(std::move(times)), draw_(times_.seed) {}

  device_id id() const noexcept override { return id_; }
  arena& memory() noexcept override { return memory_; }
  std::unique_ptr<stream> make_stream(const stream_options& o) override {
    std::lock_guard guard{making_};
    return std::make_unique<sim_stream>(o.name, times_, draw_(),
                                        thread_for_stream());
  }
  tensor to_host(const tensor& value, arena& host, stream& on) override {
    return copy(value, host, on);
  }
  // The host's value may change before the copy is done, so it is staged.
  tensor to_device(const tensor& host_value, stream& on) override {
    return copy(clone(host_value, staging_), memory_, on);
  }

private:
  static tensor copy(const tensor& value, arena& to, stream& on) {
    if (!value && value.is_plain())
      return {};
    auto copied = tensor::make(to, value.dims(), value.type());
    copied.set_levels(value.levels());
    dynamic_cast<sim_stream&>(on).copy(value, copied);
    return copied;
  }

  // Without times one thread runs all streams in the order of launches. That is
  // enough: what a stream waits for was launched before. More threads would
  // wait for each other's cores.
  std::shared_ptr<stream_thread> thread_for_stream() {
    if (times_.max_delay_us > 0 || !times_.us_of_op.empty())
      return std::make_shared<stream_thread>(0);
    if (!thread_)
      thread_ = std::make_shared<stream_thread>(look_ns());
    return thread_;
  }

  /// Waking a sleeping thread takes 5 to 50 us. With one core, a polling thread
  /// would keep others from working.
  static std::uint64_t look_ns() { return usable_cores() < 2 ? 0 : 50'000; }

  device_id id_;
  arena memory_;
  arena staging_{make_host_memory_source()};
  sim_times times_;   // of the streams, which the device outlives
  std::mutex making_; // guards the members below
  splitmix64 draw_;
  std::shared_ptr<stream_thread> thread_; // runs all streams
};

} // namespace

std::unique_ptr<device> make_sim_device(device_id id, sim_times times) {
  return std::make_unique<sim_device>(id, std::move(times));
}

} // namespace troupe
