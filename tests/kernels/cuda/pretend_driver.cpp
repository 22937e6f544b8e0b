// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/pretend_driver.hpp>

#include <kernels/cuda/body_runner.hpp>
#include <kernels/cuda/plain_product.hpp>
#include <kernels/cuda/pretend_capture.hpp>
#include <kernels/cuda/pretend_nccl.hpp>
#include <kernels/cuda/pretend_queue.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/random.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

namespace {

using namespace cuda;

class driver_without_gpu final
  : public pretend_driver,
    public std::enable_shared_from_this<driver_without_gpu> {
public:
  explicit driver_without_gpu(const pretend_options& options)
    : options_(options), draw_(options.seed),
      live_(static_cast<std::size_t>(options.gpus)) {
    set(options.goes_wrong, options.at_call);
  }
  ~driver_without_gpu() override {
    for (auto& gpu : live_)
      for (auto& [data, bytes] : gpu)
        std::free(data);
  }

  int gpus() const noexcept override { return options_.gpus; }
  std::string describe(int) const override { return "a pretend GPU"; }

  std::byte* allocate(int gpu, std::size_t bytes) noexcept override {
    std::lock_guard guard{lock_};
    if (is_refused("allocate") || comes(mishap::no_memory)
        || bytes_on(gpu) + bytes > options_.bytes)
      return nullptr;
    auto* const data =
      static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    if (!data)
      return nullptr;
    std::memset(data, 0xff, bytes); // as a number: NaN or -1
    live_[static_cast<std::size_t>(gpu)].emplace(data, bytes);
    return data;
  }
  void deallocate(int gpu, std::byte* data) noexcept override {
    std::lock_guard guard{lock_};
    for (auto& c : captures_)
      if (c->gpu() == gpu)
        c->spoil("deallocate");
    for (auto* q : queues_)
      empty(*q);
    live_[static_cast<std::size_t>(gpu)].erase(data);
    std::free(data);
  }
  std::byte* allocate_pinned(std::size_t bytes) noexcept override {
    {
      std::lock_guard guard{lock_};
      if (is_refused("allocate_pinned"))
        return nullptr;
    }
    return static_cast<std::byte*>(
      std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  }
  void deallocate_pinned(std::byte* data) noexcept override { std::free(data); }

  std::unique_ptr<gpu_queue> make_queue(int gpu, bool) override {
    std::lock_guard guard{lock_};
    attempt("make_queue");
    constexpr std::uint64_t hastes[] = {0, 0, 0, 4, 8};
    auto made =
      std::make_unique<pretend_queue>([this](pretend_queue& q) { leave(q); },
                                      gpu, ++made_, hastes[draw_.below(5)]);
    queues_.push_back(made.get());
    return made;
  }
  std::unique_ptr<gpu_event> make_event(int) override {
    std::lock_guard guard{lock_};
    attempt("make_event");
    return std::make_unique<pretend_event>();
  }

  void record(gpu_event& event, gpu_queue& on) override {
    std::lock_guard guard{lock_};
    attempt("record");
    auto& queue = static_cast<pretend_queue&>(on);
    if (const auto c = capture_of(queue)) {
      static_cast<pretend_event&>(event).recorded = std::make_shared<mark>(
        mark{.recorded_in = c, .frontier = c->at(queue.number)});
      return;
    }
    settle(queue);
    ++queue.before[queue.number];
    auto made = std::make_shared<mark>(mark{&queue, queue.before});
    static_cast<pretend_event&>(event).recorded = made;
    push(on, {.reaches = std::move(made)});
  }
  void wait(gpu_queue& on, const gpu_event& event) override {
    std::lock_guard guard{lock_};
    attempt("wait");
    ++waits_;
    const auto& recorded = static_cast<const pretend_event&>(event).recorded;
    auto& queue = static_cast<pretend_queue&>(on);
    if (recorded && (recorded->recorded_in || capture_of(queue)))
      return record_wait(queue, *recorded);
    if (recorded && recorded->reached == 0)
      queue.asked.push_back(recorded);
  }
  bool reached(const gpu_event& event) override {
    std::lock_guard guard{lock_};
    attempt("reached");
    const auto& recorded = static_cast<const pretend_event&>(event).recorded;
    refuse_asking("reached", recorded);
    return !recorded || (recorded->reached > 0 && recorded->reached <= known_);
  }
  void synchronize(const gpu_event& event) override {
    std::lock_guard guard{lock_};
    attempt("synchronize");
    const auto& recorded = static_cast<const pretend_event&>(event).recorded;
    refuse_asking("synchronize", recorded);
    if (recorded)
      reach(*recorded);
    known_ = reached_;
    require_alive("synchronize");
  }
  void synchronize(gpu_queue& queue) override {
    std::lock_guard guard{lock_};
    if (const auto c = capture_of(queue)) {
      c->spoil("synchronize");
      refuse(*c);
    }
    if (is_refused("synchronize"))
      throw error(errc::kernel_failure, "synchronize: this thread records");
    settle(static_cast<pretend_queue&>(queue));
    empty(static_cast<pretend_queue&>(queue));
    known_ = reached_;
    require_alive("synchronize");
  }

  void copy(gpu_queue& on, std::byte* to, const std::byte* from,
            std::size_t bytes) override {
    std::lock_guard guard{lock_};
    attempt("copy");
    push(on, {.run = [=] { std::memcpy(to, from, bytes); },
              .fails = comes(mishap::kernel_fails)});
  }
  void launch(gpu_queue& on, kernel_number which, const launch_shape& shape,
              const void* arguments, std::size_t bytes) override {
    std::lock_guard guard{lock_};
    attempt("launch");
    const auto* const first = static_cast<const std::byte*>(arguments);
    std::vector<std::byte> kept(first, first + bytes);
    push(on, {.run =
                [this, which, shape, kept = std::move(kept)] {
                  body_runners[which.value](shape, kept.data(), draw_);
                },
              .fails = comes(mishap::kernel_fails)});
  }
  void multiply(gpu_queue& on, const matrix_product& product) override {
    std::lock_guard guard{lock_};
    attempt("multiply");
    push(on, {.run = [product] { multiply_plainly(product); },
              .fails = comes(mishap::kernel_fails)});
  }

  void begin_capture(gpu_queue& origin) override {
    std::lock_guard guard{lock_};
    attempt("begin_capture");
    const auto& queue = static_cast<pretend_queue&>(origin);
    if (capture_of(origin))
      throw error(errc::kernel_failure, "begin_capture: it is recorded");
    captures_.push_back(
      std::make_shared<pretend_capture>(queue.number, queue.gpu));
  }
  // Ends the recording before anything can fail.
  std::unique_ptr<gpu_graph> end_capture(gpu_queue& origin) override {
    std::lock_guard guard{lock_};
    const auto ended = capture_of(origin);
    if (!ended || ended->origin() != static_cast<pretend_queue&>(origin).number)
      throw error(errc::kernel_failure, "end_capture: no recording began here");
    if (!ended->is_by_this_thread())
      ended->spoil("end_capture by another thread");
    std::erase(captures_, ended);
    attempt("end_capture");
    refuse(*ended);
    if (!ended->is_joined())
      throw error(errc::kernel_failure,
                  "end_capture: the origin does not come after all");
    attempt("instantiate");
    auto made = std::make_unique<pretend_graph>();
    made->work = ended->work();
    return made;
  }
  void launch_graph(gpu_queue& on, gpu_graph& graph) override {
    std::lock_guard guard{lock_};
    attempt("launch_graph");
    ++graph_launches_;
    push(on, {.graph = std::make_unique<pretend_launch>(
                static_cast<pretend_graph&>(graph).work),
              .fails = comes(mishap::kernel_fails)});
  }

  std::shared_ptr<nccl> find_nccl() override {
    return options_.has_nccl
             ? make_pretend_nccl(shared_from_this(), options_.nccl_connects)
             : nullptr;
  }
  // Time goes by only while a merge hangs, so no test depends on it.
  std::uint64_t now() const noexcept override {
    std::lock_guard guard{lock_};
    constexpr std::uint64_t hour_ns = 3'600'000'000'000;
    return now_ += hanging_ > 0 ? hour_ns : 0;
  }

  void set(mishap goes_wrong, std::uint64_t at_call) override {
    std::lock_guard guard{lock_};
    mishap_ = goes_wrong;
    at_call_ = at_call;
    calls_ = 0;
    lost_ = false;
  }
  std::uint64_t calls() const override {
    std::lock_guard guard{lock_};
    return calls_;
  }
  std::size_t allocated(int gpu) const override {
    std::lock_guard guard{lock_};
    return bytes_on(gpu);
  }
  std::uint64_t waits() const override {
    std::lock_guard guard{lock_};
    return waits_;
  }
  std::uint64_t graph_launches() const override {
    std::lock_guard guard{lock_};
    return graph_launches_;
  }

  std::uint64_t merges() const override {
    std::lock_guard guard{lock_};
    return merges_;
  }

  shared_meeting meet(std::span<gpu_queue* const> queues,
                      joint_work work) override {
    std::lock_guard guard{lock_};
    attempt("meet");
    ++merges_;
    const auto made = std::make_shared<meeting>();
    made->work = std::move(work);
    for (auto what :
         {mishap::merge_hangs, mishap::merge_never_meets, mishap::merge_fails})
      if (comes(what))
        made->goes_wrong = what;
    for (auto* on : queues)
      made->of.push_back(static_cast<pretend_queue*>(on));
    const bool fails = comes(mishap::kernel_fails);
    for (auto* on : queues)
      push(*on, {.meets = made, .fails = fails});
    return made;
  }
  bool has_failed(const meeting& m) const override {
    std::lock_guard guard{lock_};
    return m.goes_wrong == mishap::merge_fails;
  }
  void end_meeting(meeting& m) override {
    std::lock_guard guard{lock_};
    m.ended = true;
    changed_.notify_all();
  }

private:
  void leave(pretend_queue& queue) noexcept {
    std::lock_guard guard{lock_};
    if (const auto c = capture_of(queue))
      c->spoil("a queue is destroyed");
    empty(queue);
    std::erase(queues_, &queue);
  }

  // All of these are called with the lock held.

  std::size_t bytes_on(int gpu) const {
    std::size_t sum = 0;
    for (auto& [data, bytes] : live_[static_cast<std::size_t>(gpu)])
      sum += bytes;
    return sum;
  }

  /// Counts a call that this mishap could hit; true if it does.
  bool comes(mishap what) noexcept {
    return what == mishap_ && calls_++ == at_call_;
  }

  void require_alive(const char* call) const {
    if (lost_)
      throw error(errc::kernel_failure,
                  std::string(call) + ": the device is lost");
  }

  void attempt(const char* call) {
    if (comes(mishap::device_lost))
      lose();
    require_alive(call);
    if (comes(mishap::call_fails))
      throw error(errc::kernel_failure, std::string(call) + ": refused");
  }

  /// What is queued never runs. Whoever waits for it is told.
  void lose() {
    lost_ = true;
    for (auto* q : queues_)
      for (auto& e : std::exchange(q->entries, {}))
        end(e);
    changed_.notify_all();
  }

  // -- recording

  std::shared_ptr<pretend_capture> capture_of(const gpu_queue& queue) const {
    const auto number = static_cast<const pretend_queue&>(queue).number;
    for (auto& c : captures_)
      if (c->records(number))
        return c;
    return nullptr;
  }

  static void refuse(const pretend_capture& c) {
    if (!c.spoiled().empty())
      throw error(errc::kernel_failure,
                  "the recording is broken: " + c.spoiled());
  }

  /// True for a call that a thread may not make while it records.
  bool is_refused(const char* call) noexcept {
    for (auto& c : captures_)
      if (c->is_by_this_thread()) {
        c->spoil(call);
        return true;
      }
    return false;
  }

  void refuse_asking(const char* call, const shared_mark& event) {
    if (event && event->recorded_in) {
      event->recorded_in->spoil(call);
      refuse(*event->recorded_in);
    }
    if (is_refused(call))
      throw error(errc::kernel_failure,
                  std::string(call) + ": this thread records");
  }

  void record_wait(pretend_queue& queue, const mark& event) {
    auto c = capture_of(queue);
    if (c && event.recorded_in != c) {
      c->spoil("a wait for an event from outside");
      refuse(*c);
    }
    c = event.recorded_in;
    if (std::ranges::count(captures_, c) == 0)
      throw error(errc::kernel_failure, "wait: the recording has ended");
    refuse(*c);
    if (c->records(queue.number) && comes(mishap::wait_forgotten))
      return;
    c->come_after(queue.number, event.frontier);
  }

  // -- running

  void push(gpu_queue& on, entry e) {
    auto& queue = static_cast<pretend_queue&>(on);
    if (const auto c = capture_of(queue)) {
      refuse(*c);
      return c->add(queue.number, std::move(e.run));
    }
    settle(queue);
    queue.entries.push_back(std::move(e));
    go_ahead();
  }

  /// Queues the waits that work which is queued next needs. A wait that an
  /// earlier one or another one for the same work implies orders nothing, so
  /// to forget it would change nothing.
  void settle(pretend_queue& queue) {
    const auto asked = std::exchange(queue.asked, {});
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto& m = asked[i];
      const auto implies = [&](const shared_mark& other) {
        return other->comes_after(*m);
      };
      if (m->reached > 0 || queue.comes_after(*m)
          || std::any_of(asked.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                         asked.end(), implies))
        continue;
      if (comes(mishap::wait_forgotten)) {
        set_apart(queue, *m);
        continue;
      }
      queue.come_after(m->before);
      queue.entries.push_back({.waits = m});
    }
  }

  /// Makes it likely that the queue runs on before the mark is reached.
  static void set_apart(pretend_queue& ahead, const mark& late) {
    ahead.haste = 8;
    late.of->haste = 0;
  }

  /// Lets hasty queues run on, one after the other.
  void go_ahead() {
    if (queues_.empty())
      return;
    const auto first = draw_.below(queues_.size());
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      auto& q = *queues_[(first + i) % queues_.size()];
      while (q.can_run() && draw_.below(8) < q.haste)
        run_next(q);
    }
  }

  /// Runs what the mark needs, and perhaps more.
  void reach(const mark& wanted) {
    while (wanted.reached == 0)
      step(*wanted.of);
  }
  void empty(pretend_queue& q) {
    while (!q.entries.empty())
      step(q);
  }
  void step(pretend_queue& q) {
    if (q.entries.empty())
      return; // another thread ran it while this one waited
    if (const auto& next = q.entries.front(); next.can_run())
      run_next(q);
    else if (next.meets)
      bring_to(shared_meeting(next.meets));
    else
      reach(*shared_mark(next.waits));
    go_ahead();
  }

  /// Lets a queue that has not come to the meeting run on. One that hangs
  /// makes the calling thread wait without the lock.
  void bring_to(const shared_meeting& m) {
    if (m->goes_wrong != mishap::merge_never_meets)
      for (auto* other : m->of)
        if (!other->has_come_to(*m))
          return step(*other);
    known_ = reached_; // time goes by
    ++hanging_;
    changed_.wait(lock_, [&] { return m->ended; });
    --hanging_;
  }

  void run_next(pretend_queue& q) {
    if (const auto& next = q.entries.front();
        next.graph && !next.fails && !next.graph->is_done()) {
      next.graph->run_next(draw_);
      return;
    }
    auto e = std::move(q.entries.front());
    q.entries.pop_front();
    if (e.fails)
      lose();
    else if (e.meets)
      take_part(*e.meets, q);
    else if (e.run)
      e.run();
    end(e);
  }

  static void take_part(meeting& m, const pretend_queue& q) {
    if (m.ended)
      return;
    if (!std::exchange(m.begun, true))
      m.work.begin();
    m.work.finish(
      static_cast<std::size_t>(std::ranges::find(m.of, &q) - m.of.begin()));
  }

  void end(entry& e) {
    if (e.reaches)
      e.reaches->reached = ++reached_;
    if (e.meets && lost_)
      e.meets->ended = true;
  }

  const pretend_options options_;
  mutable std::mutex lock_;             // guards what follows
  std::condition_variable_any changed_; // a meeting was ended
  int hanging_ = 0;                     // threads that wait for one
  mutable std::uint64_t now_ = 0;       // in ns
  splitmix64 draw_;
  std::vector<std::map<std::byte*, std::size_t>> live_; // by GPU
  std::vector<pretend_queue*> queues_;
  std::uint64_t made_ = 0;    // number of queues
  std::uint64_t reached_ = 0; // number of events
  std::uint64_t known_ = 0;   // those of them that the host knows
  mishap mishap_ = mishap::none;
  std::uint64_t at_call_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t waits_ = 0;
  std::uint64_t graph_launches_ = 0;
  std::uint64_t merges_ = 0;
  std::vector<std::shared_ptr<pretend_capture>> captures_;
  bool lost_ = false;
};

} // namespace

std::shared_ptr<pretend_driver> make_pretend_driver(pretend_options options) {
  return std::make_shared<driver_without_gpu>(options);
}

} // namespace troupe::test
