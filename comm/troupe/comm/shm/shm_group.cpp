// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/shm/shm_group.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/comm/call_text.hpp>
#include <troupe/comm/kept_memory.hpp>
#include <troupe/comm/tensor_copy.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace troupe::comm::shm {

namespace {

/// How long a rank that leaves waits for the end of sums that others add.
constexpr std::uint64_t patience_at_leave_ns = 500'000'000;

board& board_in(const shared_segment& shared) {
  return *std::launder(reinterpret_cast<board*>(shared.data()));
}

} // namespace

shm_group::shm_group(shared_segment shared, std::vector<member> members,
                     std::size_t self, std::shared_ptr<process_memory> own)
  : shared_(std::move(shared)), board_(&board_in(shared_)),
    members_(std::move(members)), self_(self), own_memory_(std::move(own)),
    memory_(own_memory_->memory()),
    parcels_(board_->processes, rings_behind<board>(shared_), members_, self_,
             memory_, gate_) {
  rank_mask all = 0;
  for (auto& m : members_)
    all |= m.ranks;
  segments_.resize(static_cast<std::size_t>(std::popcount(all)));
  own_of_rank_.resize(size());
  for (std::size_t r = 0; r < size(); ++r)
    for (auto& m : members_)
      if ((m.ranks & bit_of(r)) != 0)
        segments_[r] = m.segment.get();
  for (std::size_t r = 0; r < size(); ++r)
    if ((members_[self_].ranks & bit_of(r)) != 0) {
      own_of_rank_[r] = own_.emplace_back(std::make_unique<own_rank>()).get();
      own_.back()->rank = r;
      own_.back()->plan.emplace(segments_);
    }
  thread_.emplace("troupe-shm", board_->processes[self_], [this] {
    parcels_.advance();
    advance_all();
  });
}

std::vector<std::size_t> shm_group::own_ranks() const {
  std::vector<std::size_t> ranks;
  for (auto& of : own_)
    ranks.push_back(of->rank);
  return ranks;
}

rank_mask shm_group::everybody() const noexcept {
  return bit_of(size()) - 1;
}

void shm_group::ring_others() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::size_t p = 0; p < members_.size(); ++p)
    if (p != self_)
      ring(board_->processes[p]);
}

void shm_group::tell(const ended_call& ended) noexcept {
  if (ended.whole)
    ended.whole->completed(ended.failure);
}

// -- a rank makes a call ------------------------------------------------------

launch_result shm_group::start(std::size_t rank, const collective_call& call,
                               completion& whole) {
  auto& of = own(rank);
  auto c = new_call(of);
  if (!c)
    throw error{*of.left};
  c->whole = &whole;
  c->since_ns = now_ns();
  c->call = call;
  try {
    stage(rank, *c);
  } catch (const error& e) {
    fail(rank, e);
    throw;
  } catch (const std::bad_alloc&) {
    const error e{errc::out_of_memory, out_of_memory_text()};
    fail(rank, e);
    throw e;
  }
  const auto number = add(of, std::move(c));
  ended_call ended;
  advance(of, number, &ended);
  if (own_.size() > 1)
    advance_all();
  if (ended.number == 0)
    return {launch_status::pending, number};
  if (ended.failure)
    std::rethrow_exception(ended.failure);
  return {launch_status::done, number};
}

void shm_group::fail(std::size_t rank, const error& why) {
  auto& of = own(rank);
  auto c = new_call(of);
  if (!c)
    return;
  c->given_up = why;
  c->is_given_up.store(true, std::memory_order_relaxed);
  try {
    add(of, std::move(c));
  } catch (const error&) {
    return; // the rank has left: the others know
  }
  advance(of);
  advance_all();
}

void shm_group::give_up(std::size_t rank, ticket first, ticket last,
                        const error& why) {
  auto& of = own(rank);
  {
    std::lock_guard guard{of.lock};
    for (auto& c : of.calls)
      if (c->number >= first && c->number <= last && !c->given_up) {
        c->given_up = why;
        c->is_given_up.store(true, std::memory_order_release);
        of.has_news.store(true, std::memory_order_relaxed);
      }
  }
  advance(of);
  advance_all();
}

/// Copies the rank's values to the segment, unless they are there, and writes
/// its letter.
void shm_group::stage(std::size_t rank, own_call& c) {
  const auto& call = c.call;
  c.given.resize(call.values.size());
  if (c.letter_room < letter_bytes(call)) {
    c.letter_room = letter_bytes(call);
    c.letter = memory_.allocate(c.letter_room);
  }
  write_letter(call, c.letter.data());
  const letter_view letter{segments_[rank]->bytes(),
                           segments_[rank]->offset_of(c.letter.data()),
                           letter_bytes(call), rank};
  const bool gives =
    call.kind != collective_kind::broadcast || rank == call.root;
  for (std::size_t i = 0; gives && i < call.values.size(); ++i) {
    const auto* in = call.values[i].in;
    if (in && in->is_tensor() && in->as_tensor())
      stage_dense(c, i, in->as_tensor(), letter.values()[i]);
    else if (in && in->is_rows())
      stage_rows(rank, c, in->as_rows(), letter.values()[i]);
  }
}

/// The value with its layout if that only permutes elements, otherwise plain.
/// @param is_written others may write to it
tensor shm_group::in_segment(const tensor& value, bool is_written) {
  const auto& segment = own_memory_->segment();
  if (!value.is_plain() && !value.format()->is_permutation()) {
    auto plain = tensor::make(memory_, value.dims(), value.type());
    value.format()->to_plain(value, plain, nullptr);
    return plain;
  }
  if (segment.contains(value.raw(), value.bytes())
      && !(is_written && value.is_shared()))
    return value;
  return copied_to(memory_, value);
}

void shm_group::stage_dense(own_call& c, std::size_t i, const tensor& value,
                            letter_value& v) {
  c.given[i] = in_segment(value, c.call.kind != collective_kind::broadcast);
  v.holds = letter_value::content::dense;
  describe(c.given[i], v);
}

void shm_group::stage_rows(std::size_t rank, own_call& c,
                           const selected_rows& value, letter_value& v) {
  if (const auto view = local::view_of(&value, rank); view && view->values) {
    c.given.push_back(in_segment(value.values, false));
    describe(c.given.back(), v);
  }
  c.rows.push_back(memory_.allocate(value.rows.size() * sizeof(std::int64_t)));
  if (!value.rows.empty())
    std::memcpy(c.rows.back().data(), value.rows.data(),
                value.rows.size() * sizeof(std::int64_t));
  v.holds = letter_value::content::rows;
  v.height = value.height;
  v.row_count = value.rows.size();
  v.rows_offset = own_memory_->segment().offset_of(c.rows.back().data());
}

void shm_group::describe(const tensor& value, letter_value& v) const {
  v.type = value.type();
  v.axes = static_cast<std::uint8_t>(value.dims().rank());
  std::ranges::copy(value.dims(), v.dims);
  v.layout = value.is_plain() ? 0 : hash_of_layout(value.format()->name());
  v.offset = own_memory_->segment().offset_of(value.raw());
  v.bytes = value.bytes();
}

void shm_group::own_call::reset() noexcept {
  whole = nullptr;
  call = {};
  given_up.reset();
  is_given_up.store(false, std::memory_order_relaxed);
  given.clear();
  rows.clear();
  is_made = is_plain = is_copied = false;
}

/// Null if the rank has left.
shm_group::call_pointer shm_group::new_call(own_rank& of) {
  {
    std::lock_guard guard{of.lock};
    if (of.left)
      return nullptr;
    // The lines of the slot come from another core while the call is staged.
    const auto& s = board_->slot_of(of.made + 1);
    __builtin_prefetch(&s.progress, 1);
    __builtin_prefetch(&s.number);
    __builtin_prefetch(&s.letters, 1);
    if (of.spare)
      return std::move(of.spare);
  }
  return std::make_unique<own_call>();
}

/// Throws if the rank has left meanwhile.
ticket shm_group::add(own_rank& of, call_pointer c) {
  std::lock_guard guard{of.lock};
  if (of.left)
    throw error{*of.left};
  c->number = ++of.made;
  of.calls.push_back(std::move(c));
  of.has_news.store(true, std::memory_order_relaxed);
  return of.made;
}

/// Shows other ranks the calls that they could not see before, and the failures
/// of calls that were given up. True if there were any.
bool shm_group::make_all(own_rank& of) {
  if (!of.has_news.load(std::memory_order_relaxed))
    return false;
  of.has_news.store(false, std::memory_order_relaxed);
  auto& to_make = of.to_make;
  auto& to_fail = of.to_fail;
  to_make.clear();
  to_fail.clear();
  {
    std::lock_guard guard{of.lock};
    for (auto it = of.calls.rbegin(); it != of.calls.rend() && !(*it)->is_made;
         ++it)
      to_make.push_back(it->get());
    for (auto& c : of.calls)
      if (c->is_made && c->is_given_up.load(std::memory_order_relaxed))
        to_fail.push_back(c.get());
  }
  bool any = !to_fail.empty();
  for (; !to_make.empty() && make(of, *to_make.back()); any = true)
    to_make.pop_back();
  if (!to_make.empty()) // their slots are in use
    of.has_news.store(true, std::memory_order_relaxed);
  for (auto* c : to_fail)
    fail_call(slot_of(*c), failed_error(of.rank, *c->given_up));
  return any;
}

/// False if the slot is still in use by an earlier call.
bool shm_group::make(own_rank& of, own_call& c) {
  auto& s = slot_of(c);
  if (s.number.load(std::memory_order_acquire) != c.number) {
    // seq_cst here and where the slot is passed on: either this thread sees the
    // new number, or that one sees the flag.
    s.wanted.store(true, std::memory_order_seq_cst);
    if (s.number.load(std::memory_order_seq_cst) != c.number)
      return false;
  }
  if (c.is_given_up.load(std::memory_order_acquire))
    fail_call(s, failed_error(of.rank, *c.given_up));
  else
    s.letters[of.rank] = {segments_[of.rank]->offset_of(c.letter.data()),
                          letter_bytes(c.call), hash_of(c.call)};
  board_->ranks[of.rank].made.store(c.number, std::memory_order_release);
  c.is_made = true;
  const auto before = s.progress.arrive(of.rank);
  if (before.state != call_state::gathering)
    return true;
  const bool is_last = (before.ranks | bit_of(of.rank)) == everybody();
  if (const auto why = find_mismatch(of, c, before.ranks)) {
    if (!is_last)
      fail_call(s, *why); // unless the last rank has come: it finds it, too
    else
      end_with(s, *why);
  } else if (is_last) {
    settle(of, c);
  }
  return true;
}

/// What is wrong if one of these ranks, which have made the call too, wants
/// something else.
std::optional<error> shm_group::find_mismatch(const own_rank& of,
                                              const own_call& c,
                                              rank_mask others) {
  const auto& letters = slot_of(c).letters;
  for (; others != 0; others &= others - 1) {
    const auto other = static_cast<std::size_t>(std::countr_zero(others));
    const auto& theirs = letters[other];
    if (theirs.hash == letters[of.rank].hash)
      continue;
    try {
      const letter_view letter{segments_[other]->bytes(), theirs.offset,
                               theirs.bytes, other};
      return mismatch_error(c.number, {of.rank, text_of(c.call)},
                            {other, letter.text()});
    } catch (const error& e) {
      return e;
    }
  }
  return std::nullopt;
}

// -- a thread works on the calls of a rank ------------------------------------

/// Works on the rank's calls until others have to go on. If another thread does
/// so already, it will look once more. True if anything has changed that other
/// ranks can wait for: a call was made, has come to another state, has failed
/// or ended, or the rank has left. Whoever gets true advances the other ranks
/// of this process, too. If call `asked` has ended, it is passed to `answer`
/// instead of its completion.
bool shm_group::advance(own_rank& of, ticket asked, ended_call* answer) {
  if (of.requests.fetch_add(1, std::memory_order_acq_rel) != 0)
    return false;
  bool any = false;
  for (std::uint32_t seen = 1;;) {
    any |= tell_leave(of);
    any |= make_all(of);
    auto* first = first_call(of);
    for (std::exception_ptr failure; first && work_on(of, *first, failure, any);
         failure = nullptr) {
      any = true;
      const auto ended = end_first(of, *first, std::move(failure));
      if (answer && ended.number == asked)
        *answer = ended;
      else
        tell(ended);
      first = first_call(of);
    }
    if (of.requests.compare_exchange_strong(seen, 0, std::memory_order_acq_rel))
      return any;
  }
}

bool shm_group::progress() {
  if (parcels_.has_news() && parcels_.advance())
    return true;
  const auto news = board_->news.load(std::memory_order_acquire);
  if (news != seen_news_.load(std::memory_order_relaxed)) {
    seen_news_.store(news, std::memory_order_relaxed);
    return advance_all();
  }
  return std::ranges::any_of(own_, [this](auto& of) { return can_go_on(*of); })
         && advance_all();
}

/// False if the rank's first call still waits for other ranks.
bool shm_group::can_go_on(const own_rank& of) const noexcept {
  const auto* s = of.awaited.load(std::memory_order_acquire);
  if (!s)
    return false;
  const auto state = s->progress.now().state;
  return state != call_state::gathering && state != call_state::failing;
}

/// Called after a change that ranks of this process may wait for. True if
/// anything has changed. A change that another thread makes meanwhile, for
/// which `advance` returned false here, is passed on by that thread.
bool shm_group::advance_all() {
  bool any = false, again = true;
  while (again) {
    again = false;
    for (auto& of : own_)
      again |= advance(*of);
    any |= again;
  }
  return any;
}

void shm_group::begin_looking() noexcept {
  board_->processes[self_].looking.fetch_add(1, std::memory_order_seq_cst);
}

void shm_group::end_looking() {
  board_->processes[self_].looking.fetch_sub(1, std::memory_order_seq_cst);
  parcels_.advance(); // for changes that did not ring
  advance_all();
}

shm_group::own_call* shm_group::first_call(own_rank& of) {
  std::lock_guard guard{of.lock};
  auto* first = of.calls.empty() ? nullptr : of.calls.front().get();
  of.awaited.store(first && first->is_made ? &slot_of(*first) : nullptr,
                   std::memory_order_release);
  return first;
}

/// Takes the rank's first call, which has ended.
shm_group::ended_call shm_group::end_first(own_rank& of, own_call& c,
                                           std::exception_ptr failure) {
  if (!failure)
    hand_out(of, c);
  finish(of, c);
  const ended_call ended{c.number, c.whole, std::move(failure)};
  call_pointer taken;
  {
    std::lock_guard guard{of.lock};
    taken = std::move(of.calls.front());
    of.calls.pop_front();
  }
  taken->reset();
  std::lock_guard guard{of.lock};
  of.spare = std::move(taken);
  return ended;
}

// -- questions ----------------------------------------------------------------

std::vector<waiting_call> shm_group::waiting_calls(std::size_t rank,
                                                   std::size_t most) const {
  const auto& of = own(rank);
  std::vector<waiting_call> all;
  std::lock_guard guard{of.lock};
  for (auto& c : of.calls) {
    if (all.size() == most)
      break;
    if (c->given_up)
      continue;
    all.push_back({c->number, text_of(c->call), {}, {}});
    auto& found = all.back();
    found.since_ns = c->since_ns;
    for (std::size_t r = 0; r < size(); ++r) {
      const auto made = board_->ranks[r].made.load(std::memory_order_acquire);
      (r == rank || made >= c->number ? found.arrived : found.missing)
        .push_back(r);
    }
    if (found.missing.empty())
      describe_traffic(*c, found);
  }
  return all;
}

/// How far the sums of a call have come.
void shm_group::describe_traffic(const own_call& c, waiting_call& call) const {
  call.channel = "shared memory";
  for (auto& v : c.call.values)
    if (v.in && v.in->is_tensor() && v.in->as_tensor())
      call.bytes += v.in->as_tensor().bytes();
  const auto& slot = board_->slot_of(c.number);
  if (slot.progress.now().state == call_state::adding) // then there is a plan
    call.moved =
      call.bytes
      * std::min(slot.next_part.load(std::memory_order_relaxed), slot.parts)
      / slot.parts;
}

std::vector<peer_state> shm_group::peers() const {
  std::vector<peer_state> all;
  for (std::size_t p = 0; p < members_.size(); ++p) {
    if (p == self_)
      continue;
    auto [beats, steps, doing] = board_->pulses[p].read();
    all.push_back({{}, beats, steps, std::move(doing)});
    for (std::size_t r = 0; r < size(); ++r)
      if ((members_[p].ranks & bit_of(r)) != 0)
        all.back().ranks.push_back(r);
  }
  return all;
}

// -- a rank leaves ------------------------------------------------------------

void shm_group::leave(std::size_t rank, const error& why) {
  auto& of = own(rank);
  {
    std::lock_guard guard{of.lock};
    if (of.left)
      return;
    of.left = why;
    of.leaves.store(true, std::memory_order_relaxed);
  }
  advance(of);
  advance_all();
}

void shm_group::wait_for_end(std::size_t rank) const {
  while (own(rank).requests.load(std::memory_order_acquire) != 0)
    std::this_thread::yield();
}

/// Takes back the calls that others have not made, ends those that are being
/// merged, and tells the other ranks. False if the rank has not left, or this
/// was done before.
bool shm_group::tell_leave(own_rank& of) {
  if (!of.leaves.load(std::memory_order_relaxed))
    return false;
  of.leaves.store(false, std::memory_order_relaxed);
  std::deque<call_pointer> all;
  {
    std::lock_guard guard{of.lock};
    all.swap(of.calls);
    of.awaited.store(nullptr, std::memory_order_relaxed);
  }
  const error& why = *of.left; // is not changed any more
  auto kept = all.size();
  while (kept > 0 && take_back(of, *all[kept - 1]))
    --kept;
  auto& line = board_->ranks[of.rank];
  if (kept < all.size())
    line.made.store(std::min(line.made.load(std::memory_order_relaxed),
                             all[kept]->number - 1),
                    std::memory_order_release);
  line.reason.post(why);
  line.left.store(board_->departures.fetch_add(1, std::memory_order_acq_rel)
                    + 1,
                  std::memory_order_release);
  board_->news.fetch_add(1, std::memory_order_release);
  ring_others();
  for (std::size_t i = 0; i < all.size(); ++i)
    tell({all[i]->number, all[i]->whole,
          i < kept ? end_kept(of, *all[i]) : std::make_exception_ptr(why)});
  return true;
}

/// False if all ranks have made the call: it is being merged.
bool shm_group::take_back(const own_rank& of, own_call& c) {
  if (!c.is_made)
    return true;
  return slot_of(c).progress.take_back(of.rank, everybody());
}

/// Waits for the end of a call that all ranks have made.
std::exception_ptr shm_group::end_kept(own_rank& of, own_call& c) {
  std::exception_ptr failure;
  bool moved = false;
  for (const auto start = now_ns(); !work_on(of, c, failure, moved);) {
    if (now_ns() - start > patience_at_leave_ns) {
      // A process that was stopped in the middle of a sum can write to it.
      keep_for_ever(std::move(c.given));
      return std::make_exception_ptr(
        error{errc::peer_failure, text_of(c.call) + " does not end"});
    }
    std::this_thread::yield();
  }
  if (!failure)
    hand_out(of, c);
  finish(of, c);
  return failure;
}

} // namespace troupe::comm::shm
