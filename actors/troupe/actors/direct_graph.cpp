// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/direct_graph.hpp>

#include <troupe/actors/handle_actor.hpp>
#include <troupe/actors/stream_actor.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/base/random.hpp>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace troupe::actors {

namespace {

/// `op` of the step `distance` steps before.
struct predecessor {
  handle_id op;
  std::uint32_t distance;
  friend bool operator==(const predecessor&, const predecessor&) = default;
};

/// The predecessors of all ops, but for themselves.
grouped<predecessor> predecessors_of(const graph::op_order& order,
                                     std::size_t ops) {
  std::vector<grouped<predecessor>::entry> entries;
  entries.reserve(order.size());
  for (handle_id from = 0; from < ops; ++from)
    for (auto& to : order.successors(from))
      if (to.op != from)
        entries.push_back({to.op, {from, to.distance}});
  return {ops, entries};
}

bool waits_for_itself(const graph::op_order& order, handle_id op) {
  return std::ranges::any_of(order.successors(op),
                             [op](auto& to) { return to.op == op; });
}

std::uint64_t hash(std::span<const predecessor> list) noexcept {
  std::uint64_t h = list.size();
  for (auto& p : list)
    h = splitmix64{h ^ (std::uint64_t{p.op} << 2 | p.distance)}();
  return h;
}

std::uint64_t hash(std::span<const handle_id> list) noexcept {
  std::uint64_t h = list.size();
  for (auto id : list)
    h = splitmix64{h ^ id}();
  return h;
}

/// Calls `visit(keys)` for each group of keys of `lists` whose lists are equal,
/// in the order of their first keys.
template <class T, class Visit>
void for_each_equal(const grouped<T>& lists, Visit visit) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_hash;
  by_hash.reserve(lists.keys());
  for (std::uint32_t key = 0; key < lists.keys(); ++key)
    by_hash.emplace_back(hash(lists[key]), key);
  std::sort(by_hash.begin(), by_hash.end());
  std::vector<std::uint32_t> first_equal(lists.keys());
  for (std::size_t i = 0; i < by_hash.size(); ++i) {
    const auto key = by_hash[i].second;
    const auto same =
      i > 0 && by_hash[i].first == by_hash[i - 1].first
      && std::ranges::equal(lists[key], lists[by_hash[i - 1].second]);
    first_equal[key] = same ? first_equal[by_hash[i - 1].second] : key;
  }
  std::vector<grouped<std::uint32_t>::entry> entries;
  entries.reserve(lists.keys());
  for (std::uint32_t key = 0; key < lists.keys(); ++key)
    entries.emplace_back(first_equal[key], key);
  const grouped<std::uint32_t> groups{lists.keys(), entries};
  for (std::uint32_t key = 0; key < groups.keys(); ++key)
    if (const auto group = groups[key]; !group.empty())
      visit(group);
}

} // namespace

/// What ops that share a mailbox wait for.
struct direct_graph::mailbox {
  std::size_t first; ///< of its ops in `mailboxes::ops`, the leader
  std::size_t count;
  /// Messages by how many steps before the sender's step is.
  std::array<std::uint32_t, direct_op::max_slots> from_step_before{};
  bool one_thread = true; ///< all messages come from one serial stream
  bool starts = false;    ///< waits for the start of the step

  std::uint32_t all_messages() const {
    return std::accumulate(from_step_before.begin(), from_step_before.end(),
                           0u);
  }
};

struct direct_graph::mailboxes {
  grouped<predecessor> before; ///< by op
  std::vector<mailbox> all;
  std::vector<handle_id> ops;            ///< of one mailbox after the other
  std::vector<std::uint32_t> mailbox_of; ///< by op

  std::span<const handle_id> ops_of(const mailbox& m) const {
    return std::span{ops}.subspan(m.first, m.count);
  }
  handle_id leader_of(const mailbox& m) const { return ops[m.first]; }

  /// Whether a mailbox waits for just these ops of its step, ascending.
  bool waits_for_just(const mailbox& m,
                      std::span<const handle_id> ops_before) const {
    auto next = ops_before.begin();
    for (auto& p : before[leader_of(m)])
      if (p.distance == 0 && (next == ops_before.end() || *next++ != p.op))
        return false;
    return next == ops_before.end();
  }
};

inline bool direct_graph::shared_release::is_last(std::uint32_t slot) noexcept {
  auto& left = users[slot];
  if (on_one_thread) {
    const auto others = left.load(std::memory_order_relaxed) - 1;
    left.store(others, std::memory_order_relaxed);
    return others == 0;
  }
  return left.load(std::memory_order_acquire) == 1
         || left.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

// -- direct_op ----------------------------------------------------------------

const graph::op_handle& direct_op::op() const noexcept {
  const auto number = static_cast<std::size_t>(this - graph_->ops_.get());
  return graph_->context_.graph->op(graph_->handles_[number]);
}

std::string direct_op::op_name() const {
  return handle_name(*graph_->context_.graph, op().id);
}

void direct_op::fail_step(error reason) {
  auto& step = *graph_->steps_[slot_];
  graph_->context_.fail(step, op(), op_name(), std::move(reason));
}

// -- start_op -----------------------------------------------------------------

const graph::op_handle& direct_graph::start_op::op() const noexcept {
  return graph_.ops_[graph_.first_ones_.front()].op();
}

std::string direct_graph::start_op::op_name() const {
  return handle_name(*graph_.context_.graph, op().id);
}

void direct_graph::start_op::run(worker&) {
  graph_.tell_first_ones(slot_);
}

void direct_graph::start_op::fail_step(error reason) {
  graph_.context_.fail(*graph_.steps_[slot_], op(), op_name(),
                       std::move(reason));
}

// -- construction -------------------------------------------------------------

direct_graph::direct_graph(parts p, const graph::op_order& order)
  : context_(*p.context), streams_(*p.streams), places_(*p.places) {
  TROUPE_ASSERT(has_room(context_.slots(), streams_.size()));
  for (std::uint32_t slot = 0; slot < context_.slots(); ++slot)
    steps_[slot] = context_.steps[slot].get();
  place_ops(p);
  const auto all = find_mailboxes(order);
  arm(all);
  const auto released = find_releases(p.uses, all, order);
  list(all, released, order);
  lists_.shrink_to_fit();
  for (std::uint32_t slot = 0; slot < context_.slots(); ++slot)
    starts_.emplace_back(*this, slot);
}

bool direct_graph::is_serial(std::uint8_t stream) const {
  return streams_[stream]->device_stream().width() == 1;
}

void direct_graph::place_ops(parts& p) {
  handles_.resize(p.tasks.size());
  std::iota(handles_.begin(), handles_.end(), handle_id{0});
  std::stable_sort(
    handles_.begin(), handles_.end(),
    [&](handle_id a, handle_id b) { return p.stream_of[a] < p.stream_of[b]; });
  ops_ = std::make_unique<direct_op[]>(handles_.size());
  number_.resize(handles_.size());
  for (std::uint32_t n = 0; n < handles_.size(); ++n) {
    const auto handle = handles_[n];
    auto& op = ops_[n];
    number_[handle] = n;
    op.graph_ = this;
    op.task_ = std::move(p.tasks[handle]);
    op.priority = context_.graph->op(handle).priority;
    op.stream_ = p.stream_of[handle];
    streams_[op.stream_]->expect(op);
  }
}

direct_graph::mailboxes
direct_graph::find_mailboxes(const graph::op_order& order) const {
  mailboxes found{predecessors_of(order, num_ops()), {}, {}, {}};
  found.ops.reserve(num_ops());
  found.mailbox_of.resize(num_ops());
  for_each_equal(found.before, [&](std::span<const handle_id> ops) {
    for (auto o : ops)
      found.mailbox_of[o] = static_cast<std::uint32_t>(found.all.size());
    auto& m = found.all.emplace_back(found.ops.size(), ops.size());
    count_messages(m, ops, found.before[ops.front()], order);
    found.ops.insert(found.ops.end(), ops.begin(), ops.end());
  });
  return found;
}

template <class Predecessors>
void direct_graph::count_messages(mailbox& m, std::span<const handle_id> ops,
                                  Predecessors before,
                                  const graph::op_order& order) const {
  const auto stream = stream_of(ops.front());
  const auto count = [&](const predecessor& p) {
    ++m.from_step_before[p.distance];
    m.one_thread &= stream_of(p.op) == stream && is_serial(stream);
  };
  for (auto& p : before)
    count(p);
  for (auto o : ops)
    if (waits_for_itself(order, o))
      count({o, 1});
  if (m.from_step_before[0] == 0) {
    m.starts = true;
    m.one_thread = false; // the executor's thread, or a start_op's
    m.from_step_before[0] = 1;
  }
}

void direct_graph::arm(const mailboxes& all) {
  for (auto& m : all.all) {
    const auto ops = all.ops_of(m);
    auto& leader_op = ops_[number_[ops.front()]];
    leader_op.counts_plainly_ = m.one_thread;
    // Messages from before step 0 do not come.
    std::uint32_t come = 0;
    for (std::uint32_t slot = 0; slot < context_.slots(); ++slot) {
      come += m.from_step_before[slot];
      // The slot's first `start` turns what is closed from 0 to 1.
      leader_op.missing_[slot].store(2 * come + 1, std::memory_order_relaxed);
    }
    messages_ += m.all_messages();
    if (m.starts)
      first_ones_.push_back(number_[ops.front()]);
    for (std::size_t i = 1; i < ops.size(); ++i)
      ops_[number_[ops[i - 1]]].next_in_group_ = number_[ops[i]];
  }
  std::sort(first_ones_.begin(), first_ones_.end());
}

direct_graph::releases direct_graph::find_releases(
  std::span<const std::pair<handle_id, std::uint32_t>> uses,
  const mailboxes& all, const graph::op_order& order) {
  std::vector<grouped<handle_id>::entry> users_of;
  std::uint32_t temporaries = 0;
  for (auto& [user, temporary] : uses) {
    users_of.emplace_back(temporary, user);
    temporaries = std::max(temporaries, temporary + 1);
  }
  const grouped<handle_id> last_users{temporaries, users_of};
  std::vector<grouped<std::uint32_t>::entry> own;
  std::vector<grouped<std::uint32_t>::entry> shared;
  std::vector<grouped<std::uint32_t>::entry> with_mailbox;
  std::vector<std::uint32_t> ends; // of a shared release's temporaries
  for_each_equal(last_users, [&](std::span<const std::uint32_t> these) {
    const auto users = last_users[these.front()];
    if (users.size() == 1) {
      for (auto t : these)
        own.emplace_back(users.front(), t);
      return;
    }
    if (users.empty())
      return;
    if (const auto* box = find_behind(users, all, order)) {
      for (auto t : these)
        with_mailbox.emplace_back(all.leader_of(*box), t);
      return;
    }
    for (auto user : users)
      shared.emplace_back(user, static_cast<std::uint32_t>(ends.size()));
    shared_temporaries_.insert(shared_temporaries_.end(), these.begin(),
                               these.end());
    ends.push_back(static_cast<std::uint32_t>(shared_temporaries_.size()));
  });
  shared_releases_ = std::vector<shared_release>(ends.size());
  for (std::uint32_t first = 0, i = 0; i < ends.size(); first = ends[i++])
    share_release(shared_releases_[i], first, ends[i] - first, last_users);
  return {{num_ops(), own}, {num_ops(), shared}, {num_ops(), with_mailbox}};
}

const direct_graph::mailbox*
direct_graph::find_behind(std::span<const handle_id> ops, const mailboxes& all,
                          const graph::op_order& order) const {
  for (auto& to : order.successors(ops.front())) {
    auto& box = all.all[all.mailbox_of[to.op]];
    if (to.distance == 0 && all.waits_for_just(box, ops))
      return &box;
  }
  return nullptr;
}

void direct_graph::share_release(shared_release& release, std::uint32_t first,
                                 std::uint32_t count,
                                 const grouped<handle_id>& last_users) {
  const auto users = last_users[shared_temporaries_[first]];
  const auto stream = stream_of(users.front());
  release.expected = static_cast<std::uint32_t>(users.size());
  release.on_one_thread =
    is_serial(stream) && std::ranges::all_of(users, [&](handle_id o) {
      return stream_of(o) == stream;
    });
  release.first = first;
  release.count = count;
  for (auto& slot : release.users)
    slot.store(release.expected, std::memory_order_relaxed);
}

std::uint32_t direct_graph::leader_of(const mailboxes& all,
                                      handle_id op) const {
  return number_[all.ops[all.all[all.mailbox_of[op]].first]];
}

direct_graph::told_leaders
direct_graph::find_told(const mailboxes& all,
                        const graph::op_order& order) const {
  std::vector<grouped<std::uint32_t>::entry> now;
  std::vector<grouped<std::uint32_t>::entry> later; // also to themselves
  std::vector<handle_id> teller(num_ops());         // the last one, by leader
  std::ranges::fill(teller, no_handle);
  for (handle_id o = 0; o < num_ops(); ++o)
    for (auto& to : order.successors(o)) {
      const auto receiver = leader_of(all, to.op);
      if (std::exchange(teller[receiver], o) == o)
        continue;
      if (to.distance == 0)
        now.emplace_back(o, receiver);
      else
        later.emplace_back(o, receiver << distance_bits | to.distance);
    }
  return {{num_ops(), now}, {num_ops(), later}};
}

void direct_graph::list(const mailboxes& all, const releases& released,
                        const graph::op_order& order) {
  const auto told = find_told(all, order);
  for (auto o : handles_) {
    ops_[number_[o]].lists_ = static_cast<std::uint32_t>(lists_.size());
    ends_per_step_ += told.now[o].empty();
    const auto count = [](auto list) {
      return static_cast<std::uint32_t>(list.size());
    };
    const std::array<std::uint32_t, head_size> head_of_op{
      2 * all.all[all.mailbox_of[o]].all_messages(),
      leader_of(all, o),
      count(released.own[o]),
      count(released.shared[o]),
      count(told.now[o]),
      count(told.later[o]),
      count(released.at_opening[o])};
    lists_.insert(lists_.end(), head_of_op.begin(), head_of_op.end());
    for (auto part : {released.own[o], released.shared[o], told.now[o],
                      told.later[o], released.at_opening[o]})
      lists_.insert(lists_.end(), part.begin(), part.end());
  }
}

// -- steps --------------------------------------------------------------------

inline void direct_graph::release(std::span<const std::uint32_t> temporaries,
                                  std::uint32_t slot) {
  auto* const places = places_.of_slot(slot);
  for (auto t : temporaries)
    storage_places::empty(places[t]);
}

void direct_graph::release_shared(std::span<const std::uint32_t> numbers,
                                  std::uint32_t slot) {
  for (auto number : numbers) {
    auto& shared = shared_releases_[number];
    if (!shared.is_last(slot))
      continue;
    shared.users[slot].store(shared.expected, std::memory_order_relaxed);
    release({&shared_temporaries_[shared.first], shared.count}, slot);
  }
}

/// @param last what is left of the counter: its last bit
void direct_graph::open(direct_op& first, std::uint32_t slot,
                        std::uint32_t last) {
  const auto* lists = &lists_[first.lists_];
  first.missing_[slot].store(lists[expected] | (last ^ 1),
                             std::memory_order_relaxed);
  if (const auto count = lists[at_opening])
    release({lists + head_size + lists[own_places] + lists[shared_places]
               + lists[told_now] + lists[told_later],
             count},
            slot);
  for (auto* o = &first;;) {
    const auto next = o->next_in_group_;
    __builtin_prefetch(o->task_.get());
    __builtin_prefetch(&lists_[o->lists_]);
    if (o->slot_ != slot) // else its line stays with who ran it last
      o->slot_ = static_cast<std::uint8_t>(slot);
    streams_[o->stream_]->submit(*o); // may have run when this returns
    if (next == direct_op::none)
      return;
    o = &ops_[next];
  }
}

void direct_graph::arrive_from_any_thread(direct_op& to, std::uint32_t slot) {
  auto& missing = to.missing_[slot];
  auto seen = missing.load(std::memory_order_acquire);
  if (seen > 3)
    seen = missing.fetch_sub(2, std::memory_order_acq_rel);
  if (seen <= 3)
    open(to, slot, seen & 1);
}

inline void direct_graph::arrive(std::uint32_t leader_number,
                                 std::uint32_t slot) {
  auto& to = ops_[leader_number];
  if (!to.counts_plainly_) {
    arrive_from_any_thread(to, slot);
    return;
  }
  auto& missing = to.missing_[slot];
  const auto left = missing.load(std::memory_order_relaxed) - 2;
  if (left > 1) {
    missing.store(left, std::memory_order_relaxed);
    __builtin_prefetch(to.task_.get()); // the rest often comes soon
  } else {
    open(to, slot, left);
  }
}

inline void direct_graph::execute(direct_op& o, step_state& step) {
  if (step.failed.load(std::memory_order_relaxed))
    return;
  try {
    o.task_->run(step);
  } catch (...) {
    context_.fail(step, o.op(), o.op_name(), std::current_exception());
  }
}

inline void direct_graph::tell_now(std::span<const std::uint32_t> told,
                                   const step_state& step,
                                   const direct_op& by) {
  const auto slot = step.slot;
  if (context_.shuffle_seed != 0) {
    splitmix64 draw{context_.shuffle_seed ^ (std::uint64_t{by.lists_} << 32)
                    ^ step.id};
    std::vector<std::uint32_t> shuffled{told.begin(), told.end()};
    std::shuffle(shuffled.begin(), shuffled.end(), draw);
    for (auto leader_number : shuffled)
      arrive(leader_number, slot);
    return;
  }
  for (auto leader_number : told)
    arrive(leader_number, slot);
}

inline void direct_graph::tell_later(std::span<const std::uint32_t> told,
                                     std::uint32_t slot) {
  for (auto t : told)
    arrive(t >> distance_bits,
           context_.slot_after(slot, t & ((1u << distance_bits) - 1)));
}

void direct_graph::end_step(step_state& step) {
  if (step.remaining.fetch_sub(1, std::memory_order_acq_rel) == 1)
    context_.step_ended(context_.owner, step);
}

void direct_graph::start(std::uint32_t slot) {
  closed_[slot].fetch_xor(1, std::memory_order_relaxed);
  auto& stream = *streams_.front(); // of device 0, for computing
  if (stream.gathered() && !first_ones_.empty())
    stream.submit(starts_[slot]);
  else
    tell_first_ones(slot);
}

void direct_graph::tell_first_ones(std::uint32_t slot) {
  for (auto leader_number : first_ones_)
    arrive(leader_number, slot);
}

inline void direct_graph::run(direct_op& o) {
  const std::uint32_t slot = o.slot_;
  auto& step = *steps_[slot];
  auto* next = &lists_[o.lists_];
  auto* const heads = next;
  next += head_size;
  const auto take = [&next](std::uint32_t count) {
    return std::span{std::exchange(next, next + count), count};
  };
  const auto own = take(heads[own_places]);
  const auto shared = take(heads[shared_places]);
  const auto now = take(heads[told_now]);
  const auto later = take(heads[told_later]);
  for (auto leader_number : now)
    __builtin_prefetch(&ops_[leader_number]);
  if (!context_.dry_run)
    execute(o, step);
  release(own, slot);
  if (!shared.empty())
    release_shared(shared, slot);
  tell_now(now, step, o);
  if (now.empty())
    end_step(step);
  // After the step's end, so that none ends before the one ahead of it has been
  // reported. The op may run in the next step before the last message is sent.
  tell_later(later, slot);
}

void direct_op::run(worker&) {
  graph_->run(*this);
}

// -- describing ---------------------------------------------------------------

std::uint32_t direct_graph::missing(handle_id handle,
                                    const step_state& step) const noexcept {
  const auto& o = ops_[number_[handle]];
  const auto& waits_at = ops_[lists_[o.lists_ + leader]];
  const auto seen =
    waits_at.missing_[step.slot].load(std::memory_order_relaxed);
  const auto opened =
    (seen & 1) != closed_[step.slot].load(std::memory_order_relaxed);
  return opened ? 0 : seen / 2;
}

} // namespace troupe::actors
