// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/stream_actor.hpp>

#include <troupe/actors/messages.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace troupe::actors {

namespace {

/// Marks the inbox of a stream that no thread drains.
ready_op* const idle_mark = reinterpret_cast<ready_op*>(std::uintptr_t{1});

/// After so many launches, a drain checks whether other jobs of the queue wait:
/// after each one if launches are long. A collective could otherwise begin only
/// when all ready ops have run.
std::uint32_t launches_before_look(const worker& on) {
  constexpr std::uint32_t most = 16;
  return std::min(most, on.jobs_between_looks());
}

/// Removes a random op.
ready_op& take_any(std::vector<ready_op*>& ready, splitmix64& draw) {
  const auto chosen =
    ready.begin() + static_cast<long>(draw.below(ready.size()));
  auto& op = **chosen;
  ready.erase(chosen);
  return op;
}

} // namespace

/// The ready ops of a wide stream that is shuffled. It is a job that is queued
/// once per op; each run takes any of the ops. The order therefore depends on
/// the seed even though the workers' lists have an order of their own, and
/// several workers still run ops at the same time.
///
/// Thread rule: any thread.
class stream_actor::drawn_ops final : public job {
public:
  drawn_ops(job_queue& queue, std::uint64_t seed)
    : queue_(queue), draw_(seed) {}

  void submit(ready_op& op) {
    {
      std::lock_guard guard{mutex_};
      ready_.push_back(&op);
    }
    if (auto* w = worker::current_of(queue_))
      w->run_soon(*this);
    else
      queue_.push(*this);
  }

  void run(worker& on) override { next().run(on); }

private:
  ready_op& next() {
    std::lock_guard guard{mutex_};
    return take_any(ready_, draw_);
  }

  job_queue& queue_;
  std::mutex mutex_;
  std::vector<ready_op*> ready_;
  splitmix64 draw_;
};

stream_actor::stream_actor(caf::actor_config& cfg, std::string name,
                           std::unique_ptr<stream> device_stream,
                           job_queue& queue, std::size_t home,
                           std::uint64_t shuffle_seed)
  : actor_base(cfg), name_(std::move(name)), stream_(std::move(device_stream)),
    queue_(queue), home_(home), wide_(stream_->width() > 1),
    chooses_(shuffle_seed != 0), inbox_(idle_mark),
    shuffled_(shuffle_seed != 0), draw_(shuffle_seed) {
  if (wide_ && shuffled_)
    drawn_ = std::make_unique<drawn_ops>(queue_, shuffle_seed);
  stay_with_worker(false);
}

stream_actor::~stream_actor() = default;

bool stream_actor::idle() const noexcept {
  return inbox_.load(std::memory_order_acquire) == idle_mark;
}

void stream_actor::submit_to_drawn(ready_op& op) {
  drawn_->submit(op);
}

void stream_actor::submit_to_inbox(ready_op& op, bool stays) {
  auto* top = inbox_.load(std::memory_order_relaxed);
  do
    op.next_in_stream = top == idle_mark ? nullptr : top;
  while (!inbox_.compare_exchange_weak(top, &op, std::memory_order_acq_rel,
                                       std::memory_order_relaxed));
  if (top != idle_mark)
    return;
  if (auto* w = worker::current_of(queue_); stays && w)
    w->keep(*this);
  else if (stays || home_ == no_home)
    queue_.push(*this);
  else
    queue_.push_to(home_, *this);
}

inline ready_op* stream_actor::next_op() {
  if (ready_.empty())
    return nullptr;
  if (shuffled_)
    return &take_any(ready_, draw_);
  if (chooses_)
    return next_by_priority();
  auto* op = ready_.back();
  ready_.pop_back();
  return op;
}

inline void stream_actor::launch(ready_op& op, worker& on) {
  const auto before = ready_.size();
  if (admits_)
    admit(op);
  op.run(on);
  // Ops that this launch made ready run next, in the order in which they became
  // ready.
  if (ready_.size() > before + 1)
    std::reverse(ready_.begin() + static_cast<long>(before), ready_.end());
}

void stream_actor::run(worker& on) {
  draining_ = this;
  auto planned = launches_before_look(on);
  for (auto left = planned;;) {
    if ((ready_.empty() || chooses_)
        && inbox_.load(std::memory_order_relaxed) != nullptr)
      take_inbox();
    auto* op = next_op();
    if (!op) {
      ready_op* empty = nullptr;
      // Release: the next drainer, on any worker, sees `ready_` and `draw_` as
      // this drain leaves them.
      if (inbox_.compare_exchange_strong(empty, idle_mark,
                                         std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
        on.did(planned - left);
        break;
      }
      continue;
    }
    launch(*op, on);
    if (--left > 0)
      continue;
    on.did(planned);
    left = planned = launches_before_look(on);
    if (queue_.others_wait(on.index())) {
      draining_ = nullptr;
      queue_.yield(*this); // can run on another worker at once
      return;
    }
  }
  draining_ = nullptr;
}

void stream_actor::take_inbox() {
  auto* newest = inbox_.exchange(nullptr, std::memory_order_acquire);
  // The last element of `ready_` runs next. New ops are inserted at the front,
  // newest first, so that the newest runs last.
  const auto before = static_cast<long>(ready_.size());
  for (auto* op = newest; op; op = op->next_in_stream)
    ready_.push_back(op);
  if (before > 0)
    std::rotate(ready_.begin(), ready_.begin() + before, ready_.end());
}

ready_op* stream_actor::next_by_priority() {
  auto chosen = ready_.end() - 1;
  for (auto i = ready_.rbegin(); i != ready_.rend(); ++i)
    if (priority_of(**i) > priority_of(**chosen))
      chosen = i.base() - 1;
  auto* op = *chosen;
  ready_.erase(chosen);
  return op;
}

bool stream_actor::on_message(caf::mailbox_element& element, context ctx) {
  if (!element.content().match_elements<describe_atom>())
    return false;
  answer_request(
    element,
    caf::make_message(name_ + ": width " + std::to_string(stream_->width())),
    ctx);
  return true;
}

} // namespace troupe::actors
