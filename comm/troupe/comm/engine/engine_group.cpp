// SPDX-License-Identifier: Apache-2.0

// What ranks and messages do to the calls. engine_group_merge.cpp merges
// values, engine_group_meet.cpp lets the processes meet and part.
#include <troupe/comm/engine/engine_group.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/comm/call_text.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace troupe::comm {

namespace {

/// A rank that is further ahead is out of its mind.
constexpr ticket most_calls_ahead = ticket{1} << 20;
/// How long a rank that leaves lets a call go on that all ranks have made.
constexpr std::chrono::milliseconds patience_at_leave{500};

void put_number(message_bytes& message, ticket position) {
  auto head = head_of(message);
  head.call = position;
  std::memcpy(message.data(), &head, sizeof head);
}

} // namespace

// -- a rank -------------------------------------------------------------------

launch_result engine_group::start(std::size_t rank, const collective_call& call,
                                  completion& whole) {
  const auto since = now_ns();
  staged_call staged;
  try {
    staged =
      stage(rank, call, engine_->processes() > 1 ? letter_bytes_ : 0, memory_);
  } catch (const error& e) {
    fail(rank, e);
    throw;
  } catch (const std::bad_alloc&) {
    const error e{errc::out_of_memory, out_of_memory_text()};
    fail(rank, e);
    throw e;
  }
  notices others;
  lock held{mutex_};
  if (why_[rank])
    throw error{*why_[rank]};
  const auto position = made_[rank] + 1;
  auto& m = meeting_at(position);
  made_[rank] = position;
  auto& v = m.ranks[rank];
  v.is_made = true;
  if (!v.came && m.failure) {
    come_failed(m, rank, *m.failure, others);
  } else if (!v.came) {
    v.staged = std::move(staged);
    put_number(v.staged.message, position);
    v.letter = letter_in(v.staged.message, rank);
    v.hash = head_of(v.staged.message).hash;
    send_all(v.staged.message);
    come(m, rank, others);
  }
  if (m.failure) {
    const auto why = *m.failure;
    retire();
    tell(held, others);
    throw error{why};
  }
  v.whole = &whole;
  v.since_ns = since;
  v.call = call;
  held.unlock();
  asked_call asked{rank, position};
  advance(engine_->processes() == 1, &asked);
  if (asked.failure)
    std::rethrow_exception(asked.failure);
  return {asked.has_ended ? launch_status::done : launch_status::pending,
          position};
}

void engine_group::fail(std::size_t rank, const error& why) {
  notices others;
  lock held{mutex_};
  if (why_[rank])
    return;
  auto& m = meeting_at(made_[rank] + 1);
  ++made_[rank];
  m.ranks[rank].is_made = true;
  if (!m.ranks[rank].came)
    come_failed(m, rank, failed_error(rank, why), others);
  retire();
  tell(held, others);
}

void engine_group::give_up(std::size_t rank, ticket first, ticket last,
                           const error& why) {
  notices all;
  lock held{mutex_};
  const auto e = failed_error(rank, why);
  for (auto n = std::max(first, first_); n <= std::min(last, made_[rank]); ++n)
    if (auto& m = meeting_at(n); !m.failure && m.came < size_) {
      send_all(message_of({.kind = message_kind::given_up,
                           .rank = static_cast<std::uint32_t>(rank),
                           .call = n},
                          e));
      fail_own(m, e, all);
    }
  retire();
  tell(held, all);
}

std::vector<waiting_call> engine_group::waiting_calls(std::size_t rank,
                                                      std::size_t most) const {
  std::vector<waiting_call> all;
  std::lock_guard guard{mutex_};
  for (auto& m : meetings_) {
    if (all.size() == most)
      break;
    if (!m || m->failure || m->is_merged || !m->ranks[rank].whole)
      continue;
    const auto& own = m->ranks[rank];
    all.push_back({m->position, own.letter.text(), {}, {}});
    auto& found = all.back();
    found.since_ns = own.since_ns;
    for (std::size_t r = 0; r < size_; ++r)
      (m->ranks[r].came ? found.arrived : found.missing).push_back(r);
    if (found.missing.empty())
      describe_traffic(own, found);
  }
  return all;
}

/// How far the values of a call have come. Needs the lock.
void engine_group::describe_traffic(const visit& own,
                                    waiting_call& call) const {
  call.channel = engine_->name();
  for (auto& v : own.letter.values())
    call.bytes += v.bytes;
  if (!exchange_)
    return;
  call.moved = exchange_->moved();
  if (const auto awaited = exchange_->awaits();
      awaited && !states_[awaited->peer].ranks.empty()) {
    call.peer = states_[awaited->peer].ranks.front();
    call.is_receiving = awaited->is_receive;
  }
}

void engine_group::leave(std::size_t rank, const error& why) {
  notices all;
  lock held{mutex_};
  if (why_[rank])
    return;
  why_[rank] = why;
  const auto e = left_error(rank, why);
  send_all(message_of({.kind = message_kind::left,
                       .rank = static_cast<std::uint32_t>(rank),
                       .call = made_[rank]},
                      e));
  for (auto& m : meetings_)
    if (m && m->ranks[rank].whole && m->came < size_)
      all.push_back({rank, m->position,
                     std::exchange(m->ranks[rank].whole, nullptr),
                     std::make_exception_ptr(why)});
  end_rank(rank, made_[rank], e, all);
  retire();
  tell(held, all);
  if (!ended_.wait_for(held, patience_at_leave,
                       [&] { return !has_waiting_call(rank); }))
    exchange_->stop(); // another process does not go on
}

/// True if a completion of the rank is still to be called.
bool engine_group::has_waiting_call(std::size_t rank) const {
  return std::ranges::any_of(
    meetings_, [&](auto& m) { return m && m->ranks[rank].whole; });
}

void engine_group::wait_for_end(std::size_t rank) {
  lock held{mutex_};
  ended_.wait(held, [&] { return telling_ == 0 && !has_waiting_call(rank); });
}

// -- signs of life ------------------------------------------------------------

/// Posting never waits for the other processes.
void engine_group::beat(std::uint64_t steps, std::string_view doing) {
  const auto message = beat_of(steps, doing);
  lock held{mutex_};
  send_all(message);
}

std::vector<peer_state> engine_group::peers() const {
  std::vector<peer_state> others;
  lock held{mutex_};
  for (std::size_t p = 0; p < states_.size(); ++p)
    if (p != engine_->process())
      others.push_back(states_[p]);
  return others;
}

// -- looking ------------------------------------------------------------------

bool engine_group::progress() {
  const bool any = nearby_parcels_ && nearby_parcels_->progress();
  return engine_->progress() || any;
}

void engine_group::begin_looking() {
  if (nearby_parcels_)
    nearby_parcels_->begin_looking();
  engine_->begin_looking();
}

void engine_group::end_looking() {
  engine_->end_looking();
  if (nearby_parcels_)
    nearby_parcels_->end_looking();
}

// -- calls --------------------------------------------------------------------

bool engine_group::is_own(std::size_t rank) const noexcept {
  return std::ranges::find(own_, rank) != own_.end();
}

engine_group::meeting& engine_group::meeting_at(ticket position) {
  if (position >= first_ + most_calls_ahead)
    throw error(errc::invalid_argument,
                "call " + std::to_string(position) + " begins before call "
                  + std::to_string(first_) + " has ended");
  if (meetings_.size() <= position - first_)
    meetings_.resize(position - first_ + 1);
  auto& m = meetings_[position - first_];
  if (!m) {
    m = spare_.empty() ? std::make_unique<meeting>() : std::move(spare_.back());
    if (!spare_.empty())
      spare_.pop_back();
    open(*m, position);
  }
  return *m;
}

void engine_group::open(meeting& m, ticket position) {
  m.position = position;
  m.came = 0;
  m.is_merged = false;
  m.failure.reset();
  m.ranks.clear();
  m.ranks.resize(size_);
  for (std::size_t r = 0; r < size_; ++r)
    if (left_[r] && position > last_[r]) {
      m.ranks[r].came = true;
      ++m.came;
    }
  if (m.came > 0)
    m.failure = left_[first_left_];
}

/// Forgets calls that all ranks have made and that have ended.
void engine_group::retire() {
  constexpr std::size_t most_spare = 8;
  const auto is_over = [this](const meeting& m) {
    return m.came == size_ && (m.failure || m.is_merged)
           && std::ranges::all_of(own_, [&](std::size_t r) {
                return m.ranks[r].is_made || why_[r];
              });
  };
  while (!meetings_.empty() && meetings_.front()
         && is_over(*meetings_.front())) {
    if (spare_.size() < most_spare)
      spare_.push_back(std::move(meetings_.front()));
    meetings_.pop_front();
    ++first_;
  }
  ended_.notify_all();
}

/// A good letter of the rank is there.
void engine_group::come(meeting& m, std::size_t rank, notices& to) {
  auto& v = m.ranks[rank];
  v.came = v.is_good = true;
  ++m.came;
  check_alike(m, rank, to);
  if (!m.failure && m.came == size_)
    ready_.push_back(&m);
}

void engine_group::check_alike(meeting& m, std::size_t rank, notices& to) {
  const auto& v = m.ranks[rank];
  for (std::size_t r = 0; r < size_ && !m.failure; ++r)
    if (const auto& other = m.ranks[r]; other.is_good && other.hash != v.hash)
      fail_meeting(m,
                   mismatch_error(m.position, {rank, v.letter.text()},
                                  {r, other.letter.text()}),
                   to);
}

/// A rank of this process fails the call, or this process fails it for the
/// rank.
void engine_group::come_failed(meeting& m, std::size_t rank, const error& why,
                               notices& to) {
  send_all(message_of({.kind = message_kind::failed,
                       .rank = static_cast<std::uint32_t>(rank),
                       .call = m.position},
                      why));
  m.ranks[rank].came = true;
  ++m.came;
  fail_meeting(m, why, to);
}

/// The ranks of this process that have not made the call fail it.
void engine_group::fail_own(meeting& m, const error& why, notices& to) {
  for (auto r : own_)
    if (!m.ranks[r].came)
      come_failed(m, r, why, to);
}

/// Of several failures, the first one counts.
void engine_group::fail_meeting(meeting& m, const error& why, notices& to) {
  if (m.failure)
    return;
  m.failure = why;
  for (auto r : own_)
    if (auto* whole = std::exchange(m.ranks[r].whole, nullptr))
      to.push_back({r, m.position, whole, std::make_exception_ptr(why)});
}

/// A rank makes no calls after `last`.
void engine_group::end_rank(std::size_t rank, ticket last, const error& why,
                            notices& to) {
  if (left_[rank])
    return;
  if (std::ranges::none_of(left_, [](auto& e) { return e.has_value(); }))
    first_left_ = rank;
  left_[rank] = why;
  last_[rank] = last;
  for (auto& m : meetings_) {
    if (!m)
      continue;
    if (auto& v = m->ranks[rank]; !v.came && m->position > last) {
      v.came = true;
      ++m->came;
      fail_meeting(*m, why, to);
    }
    if (m->came < size_ && !m->failure)
      fail_own(*m, why, to);
  }
}

/// The process sends no more: its ranks leave, unless they have.
void engine_group::end_ranks(std::size_t process, const error& why,
                             notices& to) {
  for_each_rank(hellos_[process]->ranks, [&](std::size_t r) {
    end_rank(r, made_[r], left_error(r, why), to);
    last_[r] = 0; // no letter comes for calls that are not known yet
  });
}

/// Fails the calls that not all ranks have made, because a process could not
/// take part in them.
void engine_group::fail_unmade(const error& why, notices& to) {
  for (auto& m : meetings_)
    if (m && m->came < size_)
      fail_meeting(*m, why, to);
}

void engine_group::tell(lock& held, const notices& all, asked_call* asked) {
  if (all.empty())
    return;
  ++telling_;
  held.unlock();
  for (auto& n : all) {
    if (asked && n.rank == asked->rank && n.position == asked->position) {
      asked->has_ended = true;
      asked->failure = n.failure;
    } else {
      n.whole->completed(n.failure);
    }
  }
  held.lock();
  --telling_;
  ended_.notify_all();
}

// -- messages -----------------------------------------------------------------

void engine_group::arrived(std::size_t from,
                           std::span<const std::byte> message) {
  notices all;
  bool is_parcel = false;
  {
    lock held{mutex_};
    if (!has_met_) {
      early_.emplace_back(from, message_bytes{message.begin(), message.end()});
      ended_.notify_all();
      return;
    }
    try {
      is_parcel = head_of(message).kind == message_kind::parcel;
      if (is_parcel)
        require_rank_of(from, head_of(message));
      else
        handle(from, message, all);
    } catch (const error& e) {
      lose(from, e, all);
    } catch (const std::bad_alloc&) {
      lose(from, {errc::out_of_memory, out_of_memory_text()}, all);
    }
    retire();
    tell(held, all);
  }
  if (is_parcel) // without the lock: its receiver may take a while
    pass_on(message);
  else
    advance(false);
}

void engine_group::handle(std::size_t from, std::span<const std::byte> message,
                          notices& to) {
  const auto head = head_of(message);
  switch (head.kind) {
  case message_kind::hello: return; // it was read when the processes met
  case message_kind::call:
  case message_kind::failed:
    require_rank_of(from, head);
    return take_letter(head, message, to);
  case message_kind::given_up:
    require_rank_of(from, head);
    if (head.call >= first_)
      fail_own(meeting_at(head.call), error_of(message), to);
    return;
  case message_kind::left:
    require_rank_of(from, head);
    // It has sent the letters of all its calls before.
    return end_rank(head.rank, std::min<ticket>(head.call, made_[head.rank]),
                    error_of(message), to);
  case message_kind::broken: return lose(from, error_of(message), to);
  case message_kind::lost:
    // A process that leaves because of it must not be named instead.
    return lose(head.rank < hellos_.size() && head.rank != engine_->process()
                  ? head.rank
                  : from,
                error_of(message), to);
  case message_kind::beat: return take_beat(from, head, message);
  case message_kind::parcel: // an early one: the gate keeps it
    require_rank_of(from, head);
    return pass_on(message);
  case message_kind::bye:
    engine_->post(from, message_of({.kind = message_kind::answer_to_bye}));
    is_gone_[from] = has_answered_[from] = true;
    return end_ranks(from, {errc::peer_failure, "its process has ended"}, to);
  case message_kind::answer_to_bye: has_answered_[from] = true; return;
  }
  throw error(errc::peer_failure, "it sent a malformed message");
}

void engine_group::pass_on(std::span<const std::byte> parcel) {
  const auto head = head_of(parcel);
  parcels_.deliver(head.rank, {head.call, head.hash},
                   parcel.subspan(sizeof head));
}

void engine_group::send_parcel(std::size_t rank, std::size_t to, parcel p) {
  if (nearby_parcels_ && nearby_parcels_->reaches(to))
    nearby_parcels_->send(rank, to, std::move(p));
  else
    post_parcel(rank, to, p);
}

void engine_group::post_parcel(std::size_t rank, std::size_t to,
                               const parcel& p) {
  const message_head head{.kind = message_kind::parcel,
                          .rank = static_cast<std::uint32_t>(rank),
                          .call = p.label[0],
                          .hash = p.label[1]};
  try {
    auto message = message_of(head);
    message.reserve(sizeof head + p.bytes);
    message.insert(message.end(), p.content.data(), p.content.data() + p.bytes);
    for (std::size_t process = 0; process < hellos_.size(); ++process)
      if ((hellos_[process]->ranks & bit_of(to)) != 0)
        engine_->post(process, message);
  } catch (const std::bad_alloc&) {
    throw error(errc::out_of_memory, out_of_memory_text());
  }
}

void engine_group::require_rank_of(std::size_t process,
                                   const message_head& head) const {
  if (head.rank >= size_ || (hellos_[process]->ranks & bit_of(head.rank)) == 0)
    throw error(errc::peer_failure, "it speaks for a rank of another process");
}

void engine_group::take_letter(const message_head& head,
                               std::span<const std::byte> message,
                               notices& to) {
  if (head.call < first_)
    return;
  auto& m = meeting_at(head.call);
  auto& v = m.ranks[head.rank];
  if (v.came)
    return; // the rank has left
  made_[head.rank] = std::max<ticket>(made_[head.rank], head.call);
  if (head.kind == message_kind::call) {
    v.staged.message.assign(message.begin(), message.end());
    v.letter = letter_in(v.staged.message, head.rank);
    v.hash = head.hash;
    return come(m, head.rank, to);
  }
  v.came = true;
  ++m.came;
  fail_meeting(m, error_of(message), to);
}

void engine_group::take_beat(std::size_t from, const message_head& head,
                             std::span<const std::byte> message) {
  const auto doing = doing_of(message);
  if (lost_[from])
    return;
  auto& state = states_[from];
  ++state.beats;
  state.steps = head.call;
  state.doing = doing;
  last_beat_[from] = std::chrono::steady_clock::now();
}

void engine_group::lost(std::size_t process, const error& why) {
  notices all;
  lock held{mutex_};
  lose(process, why, all);
  retire();
  tell(held, all);
}

/// Ends the ranks of a process that cannot go on.
void engine_group::lose(std::size_t process, const error& why, notices& to) {
  ended_.notify_all();
  has_answered_[process] = true;
  if (is_gone_[process] || lost_[process])
    return;
  lost_[process] =
    error{errc::peer_failure,
          "process " + std::to_string(process) + " is lost: " + why.message()};
  if (!has_met_)
    return;
  if (!dead_)
    dead_ = lost_[process];
  exchange_->stop();
  send_all(message_of(
    {.kind = message_kind::lost, .rank = static_cast<std::uint32_t>(process)},
    why));
  end_ranks(process, *lost_[process], to);
  fail_unmade(left_error(first_of(hellos_[process]->ranks), *lost_[process]),
              to);
}

void engine_group::send(std::size_t to, std::span<const std::byte> message) {
  if (to != engine_->process() && !is_gone_[to] && !lost_[to])
    engine_->post(to, message);
}

void engine_group::send_all(std::span<const std::byte> message) {
  for (std::size_t p = 0; p < engine_->processes(); ++p)
    send(p, message);
}

} // namespace troupe::comm
