// SPDX-License-Identifier: Apache-2.0

// The stages of a call: what the thread that works on a rank's calls does in
// each `call_state`.
#include <troupe/comm/shm/shm_group.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/spin.hpp>
#include <troupe/comm/call_text.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <bit>
#include <new>
#include <utility>

namespace troupe::comm::shm {

namespace {

/// Sleeping processes are woken to help with sums of at least so many parts.
constexpr std::uint64_t parts_to_wake_for = 8;
/// How long a thread without work waits for the parts that others add.
constexpr std::uint64_t patience_ns = 50'000;

error out_of_memory() {
  return {errc::out_of_memory, out_of_memory_text()};
}

} // namespace

/// True if the call has ended, with `failure` if it has failed. Sets `moved` if
/// the rank has made it only now, or if its state has changed meanwhile, maybe
/// because of this thread: then other ranks of this process can go on, too, and
/// nobody else tells them.
bool shm_group::work_on(own_rank& of, own_call& c, std::exception_ptr& failure,
                        bool& moved) {
  auto& s = slot_of(c);
  if (!c.is_made) { // it was added after `make_all`, or its slot was in use
    if (!make(of, c)) {
      if (const auto why = left_before(c.number))
        failure = std::make_exception_ptr(*why);
      return failure != nullptr;
    }
    moved = true;
  }
  for (;;) {
    const auto [state, ranks] = s.progress.now();
    switch (state) {
    case call_state::gathering:
      if (ranks == everybody())
        return false; // the last one makes the plan
      if (const auto why = left_before(c.number))
        failure = std::make_exception_ptr(*why);
      return failure != nullptr;
    case call_state::failing: return false;
    case call_state::converting: convert(of, c); break;
    case call_state::adding: add_parts(of, c); break;
    case call_state::copying: copy(of, c); break;
    case call_state::complete: return true;
    case call_state::failed:
      failure = std::make_exception_ptr(s.failure.read());
      return true;
    }
    if (s.progress.now().state == state)
      return false;
    moved = true;
  }
}

/// Why the call fails if a rank has left and never makes it. Of several ranks,
/// the first one that left counts: others may have left because of it.
std::optional<error> shm_group::left_before(ticket number) const {
  std::uint32_t first = 0;
  std::size_t rank = 0;
  for (std::size_t r = 0; r < size(); ++r) {
    const auto& line = board_->ranks[r];
    const auto left = line.left.load(std::memory_order_acquire);
    if (left != 0 && (first == 0 || left < first)
        && line.made.load(std::memory_order_acquire) < number) {
      first = left;
      rank = r;
    }
  }
  if (first == 0)
    return std::nullopt;
  return left_error(rank, board_->ranks[rank].reason.read());
}

const call_plan& shm_group::plan_of(own_rank& of, const own_call& c) {
  if (of.planned != c.number) {
    of.planned = 0;
    of.plan->read(slot_of(c));
    of.planned = c.number;
  }
  return *of.plan;
}

/// Called by the last rank that makes the call, and when all values are plain.
void shm_group::settle(own_rank& of, own_call& c) {
  auto& s = slot_of(c);
  try {
    of.planned = 0;
    plan_of(of, c);
    of.plan->check();
  } catch (const error& e) {
    return end_with(s, e);
  } catch (const std::bad_alloc&) {
    return end_with(s, out_of_memory());
  }
  s.parts = of.plan->parts();
  s.readers = of.plan->readers();
  if (of.plan->needs_plain())
    begin(s, call_state::converting, of.plan->ranks_to_convert());
  else if (s.parts > 1)
    begin(s, call_state::adding, s.parts);
  else {
    if (s.parts == 1) // sooner done than shared
      of.plan->add_part(0);
    end_adding(s);
  }
}

void shm_group::begin(call_slot& s, call_state stage, std::uint64_t to_do) {
  s.to_do.store(to_do, std::memory_order_relaxed);
  s.progress.set(stage, everybody());
  if (stage != call_state::adding || to_do >= parts_to_wake_for)
    ring_others();
}

void shm_group::end_adding(call_slot& s) {
  if (s.readers != 0 && !s.has_failure.load(std::memory_order_relaxed))
    begin(s, call_state::copying,
          static_cast<std::uint64_t>(std::popcount(s.readers)));
  else
    end(s);
}

/// Ends a call on which no thread works any more.
void shm_group::end(call_slot& s) {
  const auto failed = s.has_failure.load(std::memory_order_relaxed);
  s.progress.set(failed ? call_state::failed : call_state::complete,
                 everybody());
  ring_others();
}

/// Of several failures, the first one counts.
void shm_group::note_failure(call_slot& s, const error& why) {
  if (!s.has_failure.exchange(true, std::memory_order_acq_rel))
    s.failure.post(why);
}

/// Fails a call, unless all ranks have made it.
void shm_group::fail_call(call_slot& s, const error& why) {
  if (s.progress.begin_failing(everybody()))
    end_with(s, why);
}

void shm_group::end_with(call_slot& s, const error& why) {
  note_failure(s, why);
  end(s);
}

void shm_group::convert(own_rank& of, own_call& c) {
  if (std::exchange(c.is_plain, true))
    return;
  auto& s = slot_of(c);
  const letter_view letter{segments_[of.rank]->bytes(),
                           s.letters[of.rank].offset, s.letters[of.rank].bytes,
                           of.rank};
  bool any = false;
  try {
    for (std::size_t i = 0; i < letter.values().size(); ++i) {
      auto& v = letter.values()[i];
      if (v.layout == 0)
        continue;
      auto plain = tensor::make(memory_, c.given[i].dims(), c.given[i].type());
      c.given[i].format()->to_plain(c.given[i], plain, nullptr);
      c.given[i] = std::move(plain);
      describe(c.given[i], v);
      any = true;
    }
  } catch (const error& e) {
    any = true;
    note_failure(s, e);
  } catch (const std::bad_alloc&) {
    any = true;
    note_failure(s, out_of_memory());
  }
  if (!any || s.to_do.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (s.has_failure.load(std::memory_order_relaxed))
    end(s);
  else
    settle(of, c);
}

void shm_group::add_parts(own_rank& of, own_call& c) {
  auto& s = slot_of(c);
  // Relaxed: what a part needs was published with the state.
  for (auto part = s.next_part.fetch_add(1, std::memory_order_relaxed);
       part < s.parts;
       part = s.next_part.fetch_add(1, std::memory_order_relaxed)) {
    try {
      plan_of(of, c).add_part(part);
    } catch (const error& e) {
      note_failure(s, e);
    } catch (const std::bad_alloc&) {
      note_failure(s, out_of_memory());
    }
    if (s.to_do.fetch_sub(1, std::memory_order_acq_rel) == 1)
      return end_adding(s);
  }
  // The others end soon, unless they lose their core.
  if (s.progress.now().state != call_state::adding)
    return;
  for (const auto start = now_ns(); s.progress.now().state == call_state::adding
                                    && now_ns() - start < patience_ns;)
    relax();
}

void shm_group::copy(own_rank& of, own_call& c) {
  auto& s = slot_of(c);
  if ((s.readers & bit_of(of.rank)) == 0 || std::exchange(c.is_copied, true))
    return;
  try {
    plan_of(of, c).copy_results(of.rank, c.call.values, memory_);
  } catch (const error& e) {
    note_failure(s, e);
  } catch (const std::bad_alloc&) {
    note_failure(s, out_of_memory());
  }
  if (s.to_do.fetch_sub(1, std::memory_order_acq_rel) == 1)
    end(s);
}

/// Sets the results that lie where the rank gave its values.
void shm_group::hand_out(const own_rank& of, own_call& c) {
  for (std::size_t i = 0; i < c.call.values.size(); ++i) {
    const auto& v = c.call.values[i];
    if (!v.out || !c.given[i]
        || (c.call.kind == collective_kind::reduce && of.rank != c.call.root))
      continue;
    if (c.call.kind != collective_kind::broadcast)
      v.out->set(std::move(c.given[i]));
    else if (v.out != v.in)
      v.out->set(v.in->as_tensor().share());
  }
}

/// The rank is done with the call. The last one passes the slot on.
void shm_group::finish(const own_rank& of, own_call& c) {
  if (!c.is_made)
    return;
  auto& s = slot_of(c);
  const auto own_bit = bit_of(of.rank);
  const auto before = s.over.fetch_or(own_bit, std::memory_order_acq_rel);
  if ((before | own_bit) != everybody())
    return;
  s.progress.reset();
  s.over.store(0, std::memory_order_relaxed);
  s.has_failure.store(false, std::memory_order_relaxed);
  s.next_part.store(0, std::memory_order_relaxed);
  s.number.store(c.number + call_slots, std::memory_order_seq_cst);
  if (!s.wanted.exchange(false, std::memory_order_seq_cst))
    return;
  board_->news.fetch_add(1, std::memory_order_release);
  ring_others();
  ring(board_->processes[self_]);
}

} // namespace troupe::comm::shm
