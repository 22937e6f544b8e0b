// SPDX-License-Identifier: Apache-2.0
#include <kernels/cuda/pretend_driver.hpp>

#include <kernels/cuda/plain_product.hpp>
#include <kernels/cuda/pretend_capture.hpp>

#include <troupe/base/error.hpp>
#include <troupe/base/random.hpp>
#include <troupe/kernels/cuda/bodies/all.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

namespace {

using namespace cuda;

// -- running a body on the CPU ------------------------------------------------

using body_runner = void (*)(const launch_shape&, const void*, splitmix64&);

template <class Body>
void run_block(place at, const typename Body::arguments& a,
               std::vector<std::uint32_t>& order, splitmix64& draw) {
  typename Body::shared shared;
  std::memset(static_cast<void*>(&shared), 0xff, sizeof shared);
  for (int phase = 0; phase < Body::phases; ++phase) {
    std::shuffle(order.begin(), order.end(), draw);
    for (auto thread : order) {
      at.thread = thread;
      Body::run(at, a, shared, phase);
    }
  }
}

template <class Body>
void run_body(const launch_shape& shape, const void* arguments,
              splitmix64& draw) {
  typename Body::arguments a;
  std::memcpy(static_cast<void*>(&a), arguments, sizeof a);
  std::vector<std::uint32_t> order(shape.threads);
  std::iota(order.begin(), order.end(), 0u);
  for (std::uint32_t block = 0; block < shape.blocks; ++block)
    run_block<Body>({block, 0, shape.blocks, shape.threads}, a, order, draw);
}

template <class Body>
struct runner_of {
  static constexpr body_runner value = &run_body<Body>;
};

constexpr auto runners = all_bodies::table<runner_of>();

// -- the driver --------------------------------------------------------------

struct pretend_queue;

/// How much of each queue, by number, comes before a point.
using past = std::map<std::uint64_t, std::uint64_t>;

/// A recorded event.
struct mark {
  bool comes_after(const mark& other) const;
  pretend_queue* of = nullptr; ///< where it was recorded; exists until reached
  past before = {};
  std::uint64_t reached = 0; ///< how many were reached before it, and it
  std::shared_ptr<pretend_capture> recorded_in = {}; ///< null: it is not
  pretend_capture::frontier frontier = {};           ///< there
};
using shared_mark = std::shared_ptr<mark>;

/// True if the mark is reached before a point with this past.
bool includes(const past& before, const mark& m);

struct entry {
  std::function<void()> run = {}; ///< a kernel or a copy
  shared_mark reaches = {};       ///< an event is recorded here
  shared_mark waits = {};         ///< an event to wait for
  std::unique_ptr<pretend_launch> graph = {};
  bool fails = false;

  bool can_run() const { return !waits || waits->reached > 0; }
};

struct pretend_graph final : gpu_graph {
  std::shared_ptr<const captured_work> work;
};

struct pretend_event final : gpu_event {
  shared_mark recorded; // null: never
};

class driver_without_gpu;

struct pretend_queue final : gpu_queue {
  pretend_queue(driver_without_gpu& on, int on_gpu, std::uint64_t made,
                std::uint64_t goes_ahead)
    : of(on), gpu(on_gpu), number(made), haste(goes_ahead) {}
  ~pretend_queue() override;

  bool can_run() const { return !entries.empty() && entries.front().can_run(); }
  bool comes_after(const mark& m) const { return includes(before, m); }
  void come_after(const mark& m) {
    for (auto& [queue, queued] : m.before)
      before[queue] = std::max(before[queue], queued);
  }

  driver_without_gpu& of;
  const int gpu;
  const std::uint64_t number;
  std::deque<entry> entries;
  past before;                    ///< of what is queued next
  std::vector<shared_mark> asked; ///< waits of what is queued next
  /// Runs on with this probability, in eighths, although nobody waits.
  std::uint64_t haste;
};

bool includes(const past& before, const mark& m) {
  const auto found = before.find(m.of->number);
  return found != before.end() && found->second >= m.before.at(m.of->number);
}

bool mark::comes_after(const mark& other) const {
  return includes(before, other);
}

// All members of the structures above are guarded by the driver's lock.
class driver_without_gpu final : public pretend_driver {
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
    auto made = std::make_unique<pretend_queue>(*this, gpu, ++made_,
                                                hastes[draw_.below(5)]);
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
                  runners[which.value](shape, kept.data(), draw_);
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

  void leave(pretend_queue& queue) noexcept {
    std::lock_guard guard{lock_};
    if (const auto c = capture_of(queue))
      c->spoil("a queue is destroyed");
    empty(queue);
    std::erase(queues_, &queue);
  }

private:
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
      queue.come_after(*m);
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
    if (const auto& next = q.entries.front(); !next.can_run())
      reach(*shared_mark(next.waits));
    else
      run_next(q);
    go_ahead();
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
    else if (e.run)
      e.run();
    end(e);
  }

  void end(entry& e) {
    if (e.reaches)
      e.reaches->reached = ++reached_;
  }

  const pretend_options options_;
  mutable std::mutex lock_; // guards what follows
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
  std::vector<std::shared_ptr<pretend_capture>> captures_;
  bool lost_ = false;
};

pretend_queue::~pretend_queue() {
  of.leave(*this);
}

} // namespace

std::shared_ptr<pretend_driver> make_pretend_driver(pretend_options options) {
  return std::make_shared<driver_without_gpu>(options);
}

} // namespace troupe::test
