// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/engine.hpp>

#include <troupe/actors/engine/engine_builder.hpp>
#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/engine/observer.hpp>
#include <troupe/actors/engine/storage.hpp>
#include <troupe/actors/engine/stream_actor.hpp>
#include <troupe/actors/steps/run_pace.hpp>
#include <troupe/actors/tasks/op_task.hpp>
#include <troupe/actors/workers/busy_workers.hpp>
#include <troupe/actors/workers/idle_workers.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/kernels/memory/used_by_several.hpp>

#include <bit>
#include <utility>

namespace troupe::actors {

namespace {

std::uint16_t number_of(const worker& w) {
  return static_cast<std::uint16_t>(w.index());
}

} // namespace

// -- op_mailbox ---------------------------------------------------------------

void op_mailbox::run(worker& on) {
  stream->of.run(*this, on);
}

const graph::op_handle* op_mailbox::op() const noexcept {
  const auto& e = stream->of;
  return &e.context_.graph->op(e.handle_of(*this));
}

void op_mailbox::fail_step(error reason) {
  auto& failed = *step.load(std::memory_order_relaxed);
  stream->of.context_.fail(failed, *op(), std::move(reason));
}

// -- construction -------------------------------------------------------------

engine::engine(parts p)
  : counter_mask_(std::bit_ceil(p.steps_told) - 1),
    slot_mask_(p.context->slots() - 1),
    running_(std::make_unique<current_op[]>(p.workers)), busy_(p.busy),
    trace_(*p.trace), disturbs_(p.disturbs), helpers_(p.helpers),
    context_(*p.context), places_(*p.places), workers_(p.workers) {
  TROUPE_ASSERT(std::has_single_bit(p.context->slots()));
  for (auto& s : context_.steps)
    steps_.push_back(s.get());
  engine_builder{*this, p}.build();
}

engine::~engine() = default;

// -- messages -----------------------------------------------------------------

inline bool engine::is_watched() const noexcept {
  return disturbs_ || trace_.wants(trace_level::ops);
}

template <class Work>
inline void engine::observe(std::uint16_t worker, Work work) {
  if (is_watched()) {
    observed o{trace_, disturbs_, worker};
    o.look_at_clock();
    work(o);
  } else {
    unobserved nobody;
    work(nobody);
  }
}

template <class Observer>
[[gnu::always_inline]] inline void
engine::tell_all(const told& targets, told_step in, handle_id from,
                 Observer& o) {
  if constexpr (Observer::looks)
    if (o.shuffles())
      return tell_shuffled(targets, in.id, from, o);
  for (auto word : targets.now)
    tell(target::from_word(word), in, from, o);
  if (!targets.later.empty())
    tell_later(targets.later, in.id, from, o);
}

template <class Observer>
[[gnu::noinline]] void engine::tell_later(std::span<const std::uint32_t> pairs,
                                          step_id step, handle_id from,
                                          Observer& o) {
  for (std::size_t i = 0; i < pairs.size(); i += 2)
    tell(target::from_word(pairs[i]), told_in(step + pairs[i + 1]), from, o);
}

template <class Observer>
[[gnu::always_inline]] inline void engine::tell(target to, told_step in,
                                                handle_id from, Observer& o) {
  if constexpr (Observer::looks)
    if (const auto receiver = receiver_of(to);
        receiver != no_handle && !o.sends(from, receiver, in.id))
      return;
  if (to.what() == target::kind::port)
    send(ports_[to.number()], in.id);
  else
    arrive(to, in, from, o);
}

void engine::tell_observed(target to, told_step in, handle_id from,
                           observed& o) {
  tell(to, in, from, o);
}

/// Delivers a message to an op or a variable.
template <class Observer>
[[gnu::always_inline]] inline void engine::arrive(target to, told_step in,
                                                  handle_id from, Observer& o) {
  if (to.what() == target::kind::variable) {
    tell_variable(variables_.at(to.number()), in, o);
    return;
  }
  auto& op = ops_.at(to.number());
  if constexpr (Observer::looks)
    record_arrival(op, from, in.id, o);
  tell_op(op, in, o);
}

template <class Observer, class Mailbox>
[[gnu::always_inline]] inline bool
engine::counts_last(const Mailbox& to, mailbox_counter& counter, told_step in) {
  auto left = counter.load(std::memory_order_acquire) - 1;
  if (mailbox_count::messages(left) != 0) {
    if (to.counts_plainly) {
      counter.store(left, std::memory_order_relaxed);
      return false;
    }
    left = counter.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if (mailbox_count::messages(left) != 0)
      return false;
  }
  if constexpr (Observer::looks)
    TROUPE_ASSERT(mailbox_count::round(left) == round_of(in.id));
  counter.store(left + mailbox_count::one_round + to.expected,
                std::memory_order_relaxed);
  return true;
}

template <class Observer>
[[gnu::always_inline]] inline void engine::tell_op(op_mailbox& to, told_step in,
                                                   const Observer& o) {
  if (!counts_last<Observer>(to, op_mailboxes::counter(to, in.counter), in))
    return;
  __builtin_prefetch(to.task);
  __builtin_prefetch(&lists_[to.lists]);
  to.step.store(steps_[slot_of(in.id)], std::memory_order_relaxed);
  if constexpr (Observer::looks)
    ready_on_[ops_.index_of(to)] = o.worker();
  to.stream->actor.submit(to); // may have run when this returns
}

template <class Observer>
[[gnu::always_inline]] inline void
engine::tell_variable(variable_mailbox& to, told_step in, Observer& o) {
  if (!counts_last<Observer>(to, variable_mailboxes::counter(to, in.counter),
                             in))
    return;
  if (!Observer::looks && to.told_here < variable_mailbox::in_lists
      && !to.is_end) [[likely]]
    tell_few(to, in, o);
  else
    open_variable(to, in, o);
}

/// The common case: the mailbox itself contains a few ops. Inline, because a
/// call and a separate loop would cost as much as the messages.
template <class Observer>
[[gnu::always_inline]] inline void engine::tell_few(const variable_mailbox& m,
                                                    told_step in, Observer& o) {
  const std::uint32_t count = m.told_here; // the compiler would read it again
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto to = target::from_word(m.told[i]);
    if (to.what() == target::kind::op) [[likely]]
      tell_op(ops_.at(to.number()), in, o);
    else
      tell_other(to, in, o);
  }
}

template <class Observer>
[[gnu::noinline]] void engine::tell_other(target to, told_step in,
                                          Observer& o) {
  tell(to, in, no_handle, o);
}

template <class Observer>
[[gnu::noinline]] void engine::open_variable(const variable_mailbox& m,
                                             told_step in, Observer& o) {
  if (m.is_end) {
    open_end(m, in, o);
    return;
  }
  auto from = no_handle;
  if constexpr (Observer::looks)
    from = handle_of(m);
  tell_all(told_by(m), in, from, o);
}

/// The end of a stream's part of a step, or of the whole step.
template <class Observer>
void engine::open_end(const variable_mailbox& end, told_step in, Observer& o) {
  if (&end != end_) {
    tell_variable(*end_, in, o);
    return;
  }
  context_.step_ended(context_.owner, *steps_[slot_of(in.id)]);
  if (end_waits_for_end_before_)
    tell_variable(*end_, told_in(in.id + 1), o);
}

inline engine::told engine::told_by(const variable_mailbox& m) const {
  if (m.told_here < variable_mailbox::in_lists)
    return {{m.told.data(), m.told_here}, {}};
  const auto* const lists = &lists_[m.lists];
  const auto* const now = lists + variable_head_size;
  return {{now, lists[variable_told_now]},
          {now + lists[variable_told_now], 2 * lists[variable_told_later]}};
}

// Mailboxes, tasks and lists are laid out in the expected order of ops, so the
// data of upcoming ops can be prefetched while this one runs. A mailbox is
// needed earlier, for its first message. First messages can jump from mailbox
// to mailbox (in an fft by 9 positions in the median), which processors do not
// predict. Prefetching at the largest lead covers all of them.
inline void engine::prefetch_upcoming(const op_mailbox& op) const noexcept {
  const auto& upcoming = ops_.upcoming(op);
  // Computed as an integer, because mailboxes after the last op have no task.
  const auto task = reinterpret_cast<std::uintptr_t>(upcoming.task);
  __builtin_prefetch(reinterpret_cast<const void*>(task));
  __builtin_prefetch(reinterpret_cast<const void*>(task + cache_line));
  __builtin_prefetch(lists_.data() + upcoming.lists);
  __builtin_prefetch(ops_.address_after(op, message_lead_), 1);
}

handle_id engine::receiver_of(target to) const noexcept {
  switch (to.what()) {
  case target::kind::op: return handle_of(ops_.at(to.number()));
  case target::kind::variable: return handle_of(variables_.at(to.number()));
  case target::kind::port: break;
  }
  return ports_[to.number()].to;
}

// -- start --------------------------------------------------------------------

void engine::start(step_state& step) {
  const auto id = step.id.load(std::memory_order_relaxed);
  if (!end_) // nothing runs here
    context_.step_ended(context_.owner, step);
  const auto is_early = id < largest_distance_;
  for (auto& s : streams_)
    if (!s.starts.empty() || (is_early && !s.first_starts.empty()))
      s.start.admit();
}

void engine_stream::start_op::admit() {
  if (waiting_.fetch_add(1, std::memory_order_acq_rel) == 0)
    on_.actor.submit(*this);
}

void engine_stream::start_op::run(worker& on) {
  auto& e = on_.of;
  e.observe(number_of(on), [&](auto& o) {
    for (auto left = waiting_.load(std::memory_order_acquire); left > 0;) {
      for (std::uint32_t i = 0; i < left; ++i)
        e.start_stream(on_, next_++, o);
      left = waiting_.fetch_sub(left, std::memory_order_acq_rel) - left;
    }
  });
}

template <class Observer>
void engine::start_stream(const engine_stream& s, step_id step, Observer& o) {
  if constexpr (Observer::looks)
    if (o.shuffles())
      return start_shuffled(s, step, o);
  if (step < largest_distance_)
    for (auto [to, distance] : s.first_starts)
      if (step < distance)
        tell(to, told_in(step), no_handle, o);
  for (auto to : s.starts)
    tell(to, told_in(step), no_handle, o);
}

// -- ops ----------------------------------------------------------------------

namespace {

no_completion never_pending;

} // namespace

template <bool Looks>
inline void engine::give_back(const op_mailbox& op, const op_lists& lists,
                              step_id step) {
  auto* const places = places_.of_slot(slot_of(step));
  for (auto own : lists.own_places) {
    if constexpr (Looks)
      record_freed(handle_of(op), own, step, slot_of(step));
    storage_places::empty(places[own]);
  }
  for (auto shared : lists.shared_places)
    give_back_shared<Looks>(op, shared, step, slot_of(step));
  if (!lists.delayed_places.empty())
    give_back_delayed<Looks>(op, lists.delayed_places, step);
}

template <bool Looks>
inline void engine::give_back_shared(const op_mailbox& op, std::uint32_t number,
                                     step_id step, std::uint32_t slot) {
  auto& shared = shared_releases_.at(number);
  auto& left = shared_releases::counter(shared, slot);
  if (const auto users = left.load(std::memory_order_acquire); users != 1) {
    if (shared.counts_plainly) {
      left.store(users - 1, std::memory_order_relaxed);
      return;
    }
    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return;
  }
  // Relaxed: the next users belong to a step that is admitted after this one
  // has ended.
  left.store(shared.users, std::memory_order_relaxed);
  if constexpr (Looks)
    record_freed(handle_of(op), shared.temporary, step, slot);
  if (shared.counts_plainly)
    return storage_places::empty(places_.at(shared.temporary, slot));
  // The other users may be work of other streams that is still under way.
  const used_by_several streams;
  storage_places::empty(places_.at(shared.temporary, slot));
}

template <bool Looks>
[[gnu::noinline]] void
engine::give_back_delayed(const op_mailbox& op,
                          std::span<const std::uint32_t> pairs, step_id step) {
  for (std::size_t i = 0; i < pairs.size(); i += 2)
    // the first steps have no step at this distance before them
    if (step >= pairs[i + 1])
      give_back_shared<Looks>(op, pairs[i], step, slot_of(step - pairs[i + 1]));
}

inline launch_status engine::execute(op_task& task, step_state& step,
                                     const op_mailbox& op, completion& whole) {
  try {
    return step.failed.load(std::memory_order_relaxed) ? task.skip(step, whole)
                                                       : task.run(step, whole);
  } catch (...) {
    context_.fail(step, *op.op(), std::current_exception());
    return launch_status::done;
  }
}

[[gnu::always_inline]] inline void engine::run_on(op_mailbox& op, worker& on) {
  auto& running = running_[on.index()].op;
  running.store(&op, std::memory_order_relaxed);
  if (is_watched()) [[unlikely]] {
    run_observed(op, on);
  } else {
    unobserved nobody;
    run_with(op, nobody);
  }
  running.store(nullptr, std::memory_order_relaxed);
}

void engine::run(op_mailbox& op, worker& on) {
  if (busy_) [[unlikely]]
    return run_noted(op, on);
  run_on(op, on);
}

[[gnu::noinline]] void engine::run_noted(op_mailbox& op, worker& on) {
  const auto& step = *op.step.load(std::memory_order_relaxed);
  busy_->begins(on.index(), handle_of(op),
                step.id.load(std::memory_order_relaxed));
  run_on(op, on);
  busy_->ends(on.index());
}

[[gnu::noinline]] void engine::run_observed(op_mailbox& op, worker& on) {
  observed o{trace_, disturbs_, number_of(on)};
  const auto id = handle_of(op);
  const auto step =
    op.step.load(std::memory_order_relaxed)->id.load(std::memory_order_relaxed);
  if (disturbs_)
    disturbs_->hold_up(id, step);
  if (context_.pace)
    context_.pace->wait_before_op({id, step, on.index()});
  if (helpers_)
    helpers_->works_on(on.index(), id, step);
  o.look_at_clock();
  record_begin(op, id, step, o);
  run_with(op, o);
}

template <class Observer>
[[gnu::always_inline]] inline void engine::run_with(op_mailbox& op,
                                                    Observer& o) {
  auto& step = *op.step.load(std::memory_order_relaxed);
  if (op.may_be_pending) [[unlikely]]
    launch(op, step, o);
  else
    run_to_end(op, step, o);
}

template <class Observer>
[[gnu::always_inline]] inline void
engine::run_to_end(op_mailbox& op, step_state& step, Observer& o) {
  const auto id = step.id.load(std::memory_order_relaxed);
  const auto* const lists = &lists_[op.lists];
  prefetch_upcoming(op);
  execute(*op.task, step, op, never_pending);
  if constexpr (Observer::looks) {
    o.look_at_clock();
    record_end(op, handle_of(op), id, o);
  }
  if (op_lists::is_short(lists)) [[likely]]
    end(op, op_lists::read_short(lists), id, o);
  else
    end_rare(op, id, o);
}

/// Releases temporaries and sends the op's messages.
template <class Observer>
[[gnu::always_inline]] inline void
engine::end(op_mailbox& op, const op_lists& lists, step_id step, Observer& o) {
  give_back<Observer::looks>(op, lists, step);
  op.step.store(nullptr, std::memory_order_relaxed);
  // The op can run in the next step before the last message is sent.
  tell_all({lists.told_now, lists.told_later}, told_in(step),
           Observer::looks ? handle_of(op) : no_handle, o);
}

template <class Observer>
[[gnu::noinline]] void engine::end_rare(op_mailbox& op, step_id step,
                                        Observer& o) {
  end(op, lists_of(op), step, o);
}

// -- launching is not finishing -----------------------------------------------

template <class Observer>
void engine::launch(op_mailbox& op, step_state& step, Observer& o) {
  const auto id = step.id.load(std::memory_order_relaxed);
  auto& pending = pending_ops_[pending_of_[handle_of(op)]];
  auto& launch = pending.launches[which_counter(id)];
  launch.step.store(&step, std::memory_order_relaxed);
  launch.under_way.store(pending.wants_completion, std::memory_order_relaxed);
  launch.was_executed.store(false, std::memory_order_relaxed);
  wait_for_tickets(pending, step);
  // From here on, the completion can overtake this thread and end the step, and
  // the op can be ready for the next one.
  op.step.store(nullptr, std::memory_order_relaxed);
  const auto record_launch = [&] {
    if constexpr (Observer::looks) {
      o.look_at_clock();
      o.record(event_kind::run_end, handle_of(op), id);
    }
  };
  if (pending.ends_later) {
    record_launch(); // the completion can come before the launch returns
    launch_later(launch);
  } else {
    pending.positions[which_counter(id)] = launch_by_ticket(launch);
    record_launch();
  }
  const auto lists = lists_of(op);
  tell_all({lists.told_now, lists.told_later}, told_in(id), handle_of(op), o);
}

void pending_launch::execute(stream&) {
  was_executed.store(true, std::memory_order_relaxed);
  const auto id = state().id.load(std::memory_order_relaxed);
  if (of->is_watched())
    of->record_late_begin(*of_op->box, id);
  const auto status =
    of->execute(*of_op->box->task, state(), *of_op->box, *this);
  const auto lists = of->lists_of(*of_op->box);
  if (of_op->ends_later) {
    if (status == launch_status::done)
      completed(nullptr);
  } else if (of->is_watched()) {
    of->record_late_results(*of_op->box, id);
    of->give_back<true>(*of_op->box, lists, id);
  } else {
    of->give_back<false>(*of_op->box, lists, id);
  }
}

void pending_launch::run(worker& on) {
  of->observe(number_of(on), [this](auto& o) { of->complete(*this, o); });
}

template <class Observer>
void engine::complete(pending_launch& launch, Observer& o) {
  const auto& op = *launch.of_op;
  const auto step = launch.state().id.load(std::memory_order_relaxed);
  if constexpr (Observer::looks)
    o.record(event_kind::completion, handle_of(*op.box), step);
  if (op.ends_later) {
    if constexpr (Observer::looks)
      record_late_results(*op.box, step);
    give_back<Observer::looks>(*op.box, lists_of(*op.box), step);
  }
  give_back_delayed<Observer::looks>(*op.box, op.gives_back_on_completion,
                                     step);
  launch.under_way.store(false, std::memory_order_relaxed);
  if constexpr (Observer::looks)
    if (o.shuffles())
      return tell_completion_shuffled(op, step, o);
  for (auto& m : op.on_completion)
    if (m.distance == 0)
      tell(m.to, told_in(step), m.from, o);
  for (auto& m : op.on_completion)
    if (m.distance > 0)
      tell(m.to, told_in(step + m.distance), m.from, o);
}

// -- ports --------------------------------------------------------------------

// Applications can send such messages too, but not with this sender.
bool engine::deliver(handle_id to, std::uint32_t number, step_id step,
                     const caf::strong_actor_ptr& sender) {
  if (!sender || sender != sender_)
    return false;
  auto& p = ports_[number];
  TROUPE_ASSERT(p.to == to);
  observe(recorder::no_worker,
          [&](auto& o) { arrive(p.receiver, told_in(step), p.from, o); });
  return true;
}

// -- a test's disturbance -----------------------------------------------------

void engine::let_go() {
  const auto& m = *disturbs_->withheld();
  unobserved nobody;
  arrive(target_of_[m.to], told_in(m.step), m.from, nobody);
}

} // namespace troupe::actors
