// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/direct_graph.hpp>

#include <troupe/actors/handle_actor.hpp>
#include <troupe/actors/op_actor.hpp>
#include <troupe/actors/stream_actor.hpp>
#include <troupe/base/assert.hpp>
#include <troupe/base/random.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <unordered_set>
#include <utility>

namespace troupe::actors {

namespace {

/// `op` of the step `distance` steps before.
struct predecessor {
  handle_id op;
  std::uint32_t distance;
  friend bool operator==(const predecessor&, const predecessor&) = default;
};

/// The predecessors of all ops.
class predecessor_lists {
public:
  /// @param across_steps also those of steps before
  predecessor_lists(const graph::op_order& order, std::size_t ops,
                    bool across_steps)
    : first_(ops + 1) {
    const auto for_each = [&](auto visit) {
      for (handle_id from = 0; from < ops; ++from)
        for (auto& to : order.successors(from))
          if (to.distance == 0 || across_steps)
            visit(from, to);
    };
    for_each([this](handle_id, const graph::op_successor& to) {
      ++first_[to.op + 1];
    });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    all_.resize(first_.back());
    auto next = first_;
    for_each([&](handle_id from, const graph::op_successor& to) {
      all_[next[to.op]++] = {from, to.distance};
    });
  }

  std::span<const predecessor> of(handle_id op) const {
    return std::span{all_}.subspan(first_[op], first_[op + 1] - first_[op]);
  }

private:
  std::vector<std::size_t> first_; // by op; one more at the end
  std::vector<predecessor> all_;
};

/// Drops what occurs again; the rest keeps its order.
void keep_first_of_each(std::vector<std::uint32_t>& values) {
  std::unordered_set<std::uint32_t> seen;
  if (values.size() > 1)
    std::erase_if(values,
                  [&](std::uint32_t v) { return !seen.insert(v).second; });
}

std::uint64_t hash(std::span<const predecessor> list) noexcept {
  std::uint64_t h = list.size();
  for (auto& p : list)
    h = splitmix64{h ^ (std::uint64_t{p.op} << 2 | p.distance)}();
  return h;
}

} // namespace

/// Ops that wait for the same messages.
struct direct_graph::mailbox {
  std::vector<handle_id> ops; ///< the leader first
  /// Messages by how many steps before the sender's step is.
  std::array<std::uint32_t, direct_op::max_slots> from_step_before{};
  bool one_thread = true; ///< all messages come from one serial stream
  bool first = false;     ///< waits for the start of the step

  std::uint32_t all_messages() const {
    return std::accumulate(from_step_before.begin(), from_step_before.end(),
                           0u);
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

void direct_op::run(worker&) {
  graph_->run(*this);
}

op_actor& direct_op::actor() noexcept {
  return *graph_->actors_[static_cast<std::size_t>(this - graph_->ops_.get())];
}

void direct_op::mark_ran(std::uint32_t slot, std::uint32_t round) noexcept {
  const auto others = ran_.load(std::memory_order_relaxed) & ~(1u << slot);
  ran_.store(static_cast<std::uint8_t>(others | round << slot),
             std::memory_order_relaxed);
  slot_.store(no_slot, std::memory_order_relaxed);
}

void direct_op::fail_step(error reason) {
  auto& step = *graph_->steps_[slot_.load(std::memory_order_relaxed)];
  actor().fail(step, std::move(reason));
}

// -- construction -------------------------------------------------------------

direct_graph::direct_graph(parts p, const graph::op_order& order)
  : context_(*p.context), streams_(*p.streams), places_(*p.places),
    overlap_(p.overlap) {
  TROUPE_ASSERT(has_room(context_.slots(), streams_.size()));
  for (std::uint32_t slot = 0; slot < context_.slots(); ++slot)
    steps_[slot] = context_.steps[slot].get();
  place_ops(p.ops);
  const auto mailboxes = find_mailboxes(p.ops, order);
  arm(mailboxes);
  const auto shared = find_shared_releases(p.ops);
  list(p.ops, mailboxes, shared, order);
}

void direct_graph::place_ops(const std::vector<op>& ops) {
  std::vector<handle_id> by_number(ops.size());
  std::iota(by_number.begin(), by_number.end(), handle_id{0});
  std::stable_sort(
    by_number.begin(), by_number.end(),
    [&](handle_id a, handle_id b) { return ops[a].stream < ops[b].stream; });
  ops_ = std::make_unique<direct_op[]>(ops.size());
  number_.resize(ops.size());
  for (std::uint32_t n = 0; n < ops.size(); ++n) {
    const auto& from = ops[by_number[n]];
    number_[by_number[n]] = n;
    actors_.push_back(from.actor);
    ops_[n].graph_ = this;
    ops_[n].task_ = &from.actor->task();
    ops_[n].priority = from.actor->op().priority;
    ops_[n].stream_ = static_cast<std::uint8_t>(from.stream);
  }
}

std::vector<direct_graph::mailbox>
direct_graph::find_mailboxes(const std::vector<op>& ops,
                             const graph::op_order& order) const {
  const predecessor_lists before{order, ops.size(), overlap_};
  std::vector<std::pair<std::uint64_t, handle_id>> by_hash;
  for (handle_id o = 0; o < ops.size(); ++o)
    by_hash.emplace_back(hash(before.of(o)), o);
  std::sort(by_hash.begin(), by_hash.end());
  std::vector<mailbox> found;
  for (std::size_t i = 0; i < by_hash.size(); ++i) {
    const auto o = by_hash[i].second;
    const auto same =
      i > 0 && by_hash[i].first == by_hash[i - 1].first
      && std::ranges::equal(before.of(o), before.of(found.back().ops.front()));
    if (!same)
      found.emplace_back();
    found.back().ops.push_back(o);
  }
  for (auto& m : found)
    count_messages(m, before.of(m.ops.front()), ops);
  return found;
}

template <class Predecessors>
void direct_graph::count_messages(mailbox& m, Predecessors before,
                                  const std::vector<op>& ops) const {
  const auto count = [&](const predecessor& p) {
    const auto stream = ops[p.op].stream;
    ++m.from_step_before[p.distance];
    m.one_thread &= stream == ops[m.ops.front()].stream
                    && streams_[stream]->device_stream().width() == 1;
  };
  for (auto& p : before)
    count(p);
  if (overlap_)
    for (auto o : m.ops)
      count({o, 1});
  if (m.from_step_before[0] == 0) {
    m.first = true;
    m.one_thread = false; // the executor's thread
    m.from_step_before[0] = 1;
  }
}

void direct_graph::arm(const std::vector<mailbox>& mailboxes) {
  for (auto& m : mailboxes) {
    auto& first = ops_[number_[m.ops.front()]];
    first.counts_plainly_ = m.one_thread;
    // Messages from before step 0 do not come.
    std::uint32_t come = 0;
    for (std::uint32_t slot = 0; slot < context_.slots(); ++slot) {
      come += m.from_step_before[slot];
      first.missing_[slot].store(come, std::memory_order_relaxed);
    }
    messages_ += m.all_messages();
    if (m.first)
      first_ones_.push_back(number_[m.ops.front()]);
    for (std::size_t i = 1; i < m.ops.size(); ++i)
      ops_[number_[m.ops[i - 1]]].next_in_group_ = number_[m.ops[i]];
  }
  std::sort(first_ones_.begin(), first_ones_.end());
}

/// Moves temporaries that several ops release from `ops` to
/// `shared_releases_`; returns by op the numbers there.
std::vector<std::vector<std::uint32_t>>
direct_graph::find_shared_releases(std::vector<op>& ops) {
  std::map<std::size_t, std::vector<handle_id>> users; // by temporary
  for (handle_id o = 0; o < ops.size(); ++o)
    for (auto* s : ops[o].releases)
      users[s->temporary()].push_back(o);
  std::map<std::vector<handle_id>, std::vector<std::uint32_t>> sets;
  for (auto& [temporary, by] : users)
    if (by.size() > 1)
      sets[by].push_back(static_cast<std::uint32_t>(temporary));
  for (auto& o : ops)
    std::erase_if(o.releases,
                  [&](storage* s) { return users[s->temporary()].size() > 1; });

  std::vector<std::vector<std::uint32_t>> shared(ops.size());
  shared_releases_ = std::vector<shared_release>(sets.size());
  std::uint32_t number = 0;
  for (auto& [by, temporaries] : sets) {
    auto& release = shared_releases_[number];
    release.expected = static_cast<std::uint32_t>(by.size());
    release.on_one_thread = on_one_thread(by, ops);
    release.first = static_cast<std::uint32_t>(shared_temporaries_.size());
    release.count = static_cast<std::uint32_t>(temporaries.size());
    shared_temporaries_.insert(shared_temporaries_.end(), temporaries.begin(),
                               temporaries.end());
    for (auto& slot : release.users)
      slot.store(release.expected, std::memory_order_relaxed);
    for (auto o : by)
      shared[o].push_back(number);
    ++number;
  }
  return shared;
}

bool direct_graph::on_one_thread(const std::vector<handle_id>& these,
                                 const std::vector<op>& ops) const {
  const auto first = ops[these.front()].stream;
  return streams_[first]->device_stream().width() == 1
         && std::ranges::all_of(
           these, [&](handle_id o) { return ops[o].stream == first; });
}

void direct_graph::list(const std::vector<op>& ops,
                        const std::vector<mailbox>& mailboxes,
                        const std::vector<std::vector<std::uint32_t>>& shared,
                        const graph::op_order& order) {
  std::vector<const mailbox*> mailbox_of(ops.size());
  for (auto& m : mailboxes)
    for (auto o : m.ops)
      mailbox_of[o] = &m;
  std::vector<handle_id> by_number(ops.size());
  for (handle_id o = 0; o < ops.size(); ++o)
    by_number[number_[o]] = o;
  const auto leader_of = [&](handle_id o) {
    return number_[mailbox_of[o]->ops.front()];
  };
  const auto count = [](const auto& list) {
    return static_cast<std::uint32_t>(list.size());
  };
  std::vector<std::uint32_t> told;
  for (auto o : by_number) {
    ops_[number_[o]].lists_ = count(lists_);
    told.clear();
    auto ends = true;
    for (auto& to : order.successors(o)) {
      ends &= to.distance > 0;
      if (to.distance == 0 || overlap_)
        told.push_back(leader_of(to.op) << distance_bits | to.distance);
    }
    keep_first_of_each(told);
    ends_per_step_ += ends;
    const std::array<std::uint32_t, head_size> head_of_op{
      mailbox_of[o]->all_messages(),
      leader_of(o),
      count(ops[o].releases),
      count(shared[o]),
      count(told),
      ends};
    lists_.insert(lists_.end(), head_of_op.begin(), head_of_op.end());
    for (auto* s : ops[o].releases)
      lists_.push_back(static_cast<std::uint32_t>(s->temporary()));
    lists_.insert(lists_.end(), shared[o].begin(), shared[o].end());
    lists_.insert(lists_.end(), told.begin(), told.end());
  }
}

// -- steps --------------------------------------------------------------------

inline void direct_graph::open(direct_op& first, std::uint32_t slot) {
  first.missing_[slot].store(lists_[first.lists_ + expected],
                             std::memory_order_relaxed);
  for (auto* o = &first;;) {
    const auto next = o->next_in_group_;
    __builtin_prefetch(o->task_);
    o->slot_.store(static_cast<std::uint8_t>(slot), std::memory_order_relaxed);
    streams_[o->stream_]->submit(*o); // may have run when this returns
    if (next == direct_op::none)
      return;
    o = &ops_[next];
  }
}

inline void direct_graph::arrive(std::uint32_t leader_number,
                                 std::uint32_t slot) {
  auto& to = ops_[leader_number];
  auto& missing = to.missing_[slot];
  if (to.counts_plainly_) {
    const auto left = missing.load(std::memory_order_relaxed) - 1;
    if (left > 0) {
      missing.store(left, std::memory_order_relaxed);
      return;
    }
  } else if (missing.load(std::memory_order_acquire) != 1
             && missing.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  open(to, slot);
}

inline void direct_graph::release(const std::uint32_t* lists,
                                  std::uint32_t slot) {
  auto* const places = places_.of_slot(slot);
  const auto* next = lists + head_size;
  for (const auto* end = next + lists[own_places]; next != end; ++next)
    places[*next].empty();
  for (const auto* end = next + lists[shared_places]; next != end; ++next) {
    auto& shared = shared_releases_[*next];
    if (!shared.is_last(slot))
      continue;
    shared.users[slot].store(shared.expected, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < shared.count; ++i)
      places[shared_temporaries_[shared.first + i]].empty();
  }
}

inline void direct_graph::execute(direct_op& o, step_state& step) {
  if (step.failed.load(std::memory_order_relaxed))
    return;
  try {
    o.task_->run(step, streams_[o.stream_]->device_stream());
  } catch (...) {
    o.actor().fail(step, std::current_exception());
  }
}

inline void direct_graph::tell(std::uint32_t* lists, const step_state& step,
                               const direct_op& by) {
  auto* const first =
    lists + head_size + lists[own_places] + lists[shared_places];
  auto* const end = first + lists[successors];
  if (context_.shuffle_seed != 0) {
    splitmix64 draw{context_.shuffle_seed ^ (std::uint64_t{by.lists_} << 32)
                    ^ step.id};
    std::shuffle(first, end, draw);
  }
  const auto slot = step.slot;
  for (auto* s = first; s != end; ++s) {
    const auto distance = *s & ((1u << distance_bits) - 1);
    arrive(*s >> distance_bits,
           distance == 0 ? slot : context_.slot_after(slot, distance));
  }
}

void direct_graph::start(std::uint32_t slot) {
  round_[slot].fetch_xor(1, std::memory_order_relaxed);
  for (auto leader_number : first_ones_)
    arrive(leader_number, slot);
}

void direct_graph::run(direct_op& o) {
  const auto slot = o.slot_.load(std::memory_order_relaxed);
  auto& step = *steps_[slot];
  auto* const lists = &lists_[o.lists_];
  if (!context_.dry_run) {
    execute(o, step);
    release(lists, slot);
  }
  o.mark_ran(slot, round_[slot].load(std::memory_order_relaxed));
  tell(lists, step, o);
  const auto waits_for_itself = lists[leader];
  if (lists[ends_step]
      && step.remaining.fetch_sub(1, std::memory_order_acq_rel) == 1)
    context_.step_ended(context_.owner, step);
  // Last, so that no step ends before the one ahead of it has been reported:
  // from here on the op may run in the next step.
  if (overlap_)
    arrive(waits_for_itself, context_.slot_after(slot, 1));
}

// -- describing ---------------------------------------------------------------

bool direct_graph::has_run(handle_id handle,
                           const step_state& step) const noexcept {
  const auto ran = ops_[number_[handle]].ran_.load(std::memory_order_relaxed);
  return ((ran >> step.slot) & 1u)
         == round_[step.slot].load(std::memory_order_relaxed);
}

std::uint32_t direct_graph::missing(handle_id handle,
                                    const step_state& step) const noexcept {
  const auto& o = ops_[number_[handle]];
  if (o.slot_.load(std::memory_order_relaxed) == step.slot)
    return 0;
  const auto& waits_at = ops_[lists_[o.lists_ + leader]];
  return waits_at.missing_[step.slot].load(std::memory_order_relaxed);
}

} // namespace troupe::actors
