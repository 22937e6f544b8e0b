// SPDX-License-Identifier: Apache-2.0
#include <troupe/comm/local/local_group.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/comm/call_text.hpp>
#include <troupe/comm/end_of_group.hpp>

#include <algorithm>
#include <utility>

namespace troupe::comm {

namespace local {

namespace {

bool are_alike(const collective_call& a, const collective_call& b) {
  return a.kind == b.kind && a.root == b.root
         && std::ranges::equal(a.values, b.values, {}, &rank_value::name,
                               &rank_value::name);
}

} // namespace

launch_status cpu_merger::merge(std::span<const rank_part> ranks, completion&) {
  const auto& call = ranks.front().call;
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    for (std::size_t r = 0; r < ranks.size(); ++r)
      values_[r] = ranks[r].call.values[i];
    try {
      merge_.run(call.kind, call.root, values_);
    } catch (const error& e) {
      throw e.with_context({.variable = std::string{call.values[i].name}});
    }
  }
  return launch_status::done;
}

local_group::local_group(std::unique_ptr<merger> merges)
  : made_(merges->size()), left_(merges->size()), merges_(std::move(merges)) {
  waiting_.reserve(size());
  make_room();
}

launch_result local_group::start(std::size_t rank, const collective_call& call,
                                 completion& whole) {
  std::unique_lock lock{mutex_};
  if (left_[rank])
    throw error{*left_[rank]};
  auto& m = join(rank);
  notices others;
  check_alike(m, rank, call, others);
  if (m.failure) {
    const auto why = *m.failure;
    if (is_complete(m))
      end(m);
    lock.unlock();
    tell(others);
    throw error{why};
  }
  m.ranks[rank].whole = &whole;
  m.ranks[rank].since_ns = now_ns();
  m.ranks[rank].part = {call, merges_->caller()};
  if (!is_complete(m))
    return {launch_status::pending, m.position};
  lock.unlock(); // nobody else changes a call that all ranks have made
  return finish(m, rank);
}

/// Called by the last rank that makes the call. Merges the values and notifies
/// the other ranks. If the merge is pending, its end notifies all of them.
launch_result local_group::finish(meeting& m, std::size_t rank) {
  std::exception_ptr failure;
  const auto position = m.position; // the meeting may end within the merge
  try {
    if (merge_all(m) == launch_status::pending)
      return {launch_status::pending, position};
  } catch (...) {
    failure = std::current_exception();
  }
  const launch_result result{launch_status::done, position};
  waiting_.clear();
  for (std::size_t r = 0; r < size(); ++r)
    if (r != rank)
      waiting_.push_back(m.ranks[r].whole);
  {
    std::lock_guard guard{mutex_};
    end(m);
  }
  for (auto* other : waiting_)
    other->completed(failure);
  if (failure)
    std::rethrow_exception(failure);
  return result;
}

launch_status local_group::merge_all(meeting& m) {
  parts_.clear();
  for (auto& r : m.ranks)
    parts_.push_back(r.part);
  m.whole.of = this;
  m.whole.at = &m;
  return merges_->merge(parts_, m.whole);
}

/// Called when a pending merge has ended, on any thread.
void local_group::merged(meeting& m, std::exception_ptr failure) noexcept {
  std::vector<completion*> all;
  for (auto& r : m.ranks)
    if (r.whole)
      all.push_back(r.whole);
  {
    std::lock_guard guard{mutex_};
    end(m);
  }
  for (auto* rank : all)
    rank->completed(failure);
}

void local_group::fail(std::size_t rank, const error& why) {
  notices others;
  {
    std::lock_guard guard{mutex_};
    if (left_[rank])
      return;
    auto& m = join(rank);
    if (!m.failure)
      fail_meeting(m, failed_error(rank, why), others);
    if (is_complete(m))
      end(m);
  }
  tell(others);
}

void local_group::give_up(std::size_t rank, ticket first, ticket last,
                          const error& why) {
  notices all;
  {
    std::lock_guard guard{mutex_};
    for (auto position = std::max(first, ended_ + 1);
         position <= std::min(last, made_[rank]); ++position)
      if (auto& m = meeting_at(position); !m.failure && !is_complete(m))
        fail_meeting(m, failed_error(rank, why), all);
  }
  tell(all);
}

std::vector<waiting_call> local_group::waiting_calls(std::size_t rank,
                                                     std::size_t most) const {
  std::vector<waiting_call> all;
  std::lock_guard guard{mutex_};
  for (auto position = ended_ + 1; position <= made_[rank] && all.size() < most;
       ++position) {
    const auto& m = meeting_at(position);
    if (m.ended || m.failure)
      continue;
    all.push_back({position, text_of(m.ranks[rank].part.call), {}, {}});
    auto& found = all.back();
    found.since_ns = m.ranks[rank].since_ns;
    for (std::size_t r = 0; r < size(); ++r)
      (m.ranks[r].came ? found.arrived : found.missing).push_back(r);
  }
  return all;
}

void local_group::leave(std::size_t rank, const error& why) {
  notices all;
  {
    std::lock_guard guard{mutex_};
    if (left_[rank])
      return;
    left_[rank] = why;
    const auto newest = std::ranges::max(made_);
    for (auto position = ended_ + 1; position <= newest; ++position)
      leave_meeting(meeting_at(position), rank, all);
  }
  tell(all);
}

void local_group::leave_meeting(meeting& m, std::size_t rank, notices& to) {
  if (is_complete(m))
    return; // it is being merged, or has failed
  auto& own = m.ranks[rank];
  if (auto* whole = std::exchange(own.whole, nullptr))
    to.emplace_back(whole, std::make_exception_ptr(*left_[rank]));
  if (!std::exchange(own.came, true))
    ++m.came;
  if (!m.failure)
    fail_meeting(m, left_error(rank, *left_[rank]), to);
  if (is_complete(m))
    end(m);
}

/// Counts the rank's next call as made and returns it.
local_group::meeting& local_group::join(std::size_t rank) {
  const auto position = made_[rank] + 1;
  if (position - ended_ > meetings_.size())
    make_room();
  auto& m = meeting_at(position);
  if (m.position == 0)
    open(m, position);
  made_[rank] = position;
  m.ranks[rank].came = true;
  ++m.came;
  return m;
}

void local_group::open(meeting& m, ticket position) {
  m.position = position;
  m.ranks.resize(size());
  for (std::size_t r = 0; r < size(); ++r)
    if (left_[r]) {
      m.ranks[r].came = true;
      ++m.came;
      m.failure = left_error(r, *left_[r]);
    }
}

/// Called when all ranks have made the call. Calls end in order. A later call
/// can be complete first if a rank leaves while this one is merged.
void local_group::end(meeting& m) noexcept {
  m.ended = true;
  for (auto* next = &m; next->ended; next = &meeting_at(ended_ + 1)) {
    if (next->position != ended_ + 1)
      return;
    ++ended_;
    next->position = 0;
    next->ended = false;
    next->came = 0;
    next->ranks.assign(size(), visit{});
    next->failure.reset();
  }
}

/// Doubles the number of calls that the fastest rank can be ahead of the
/// slowest.
void local_group::make_room() {
  std::vector<std::unique_ptr<meeting>> more(
    std::max<std::size_t>(2, 2 * meetings_.size()));
  for (auto& m : meetings_)
    if (m->position != 0)
      more[m->position % more.size()] = std::move(m);
  for (auto& m : more)
    if (!m)
      m = std::make_unique<meeting>();
  meetings_ = std::move(more);
}

void local_group::check_alike(meeting& m, std::size_t rank,
                              const collective_call& call, notices& to) {
  const auto first = std::ranges::find_if(
    m.ranks, [](const visit& v) { return v.whole != nullptr; });
  if (m.failure || first == m.ranks.end() || are_alike(first->part.call, call))
    return;
  const auto other = static_cast<std::size_t>(first - m.ranks.begin());
  fail_meeting(m,
               mismatch_error(m.position, {rank, text_of(call)},
                              {other, text_of(first->part.call)}),
               to);
}

void local_group::fail_meeting(meeting& m, const error& why, notices& to) {
  m.failure = why;
  for (auto& r : m.ranks)
    if (auto* whole = std::exchange(r.whole, nullptr))
      to.emplace_back(whole, std::make_exception_ptr(why));
}

void local_group::tell(const notices& all) noexcept {
  for (auto& [whole, failure] : all)
    whole->completed(failure);
}

std::vector<std::unique_ptr<communicator>>
make_ends(std::unique_ptr<merger> merges) {
  const auto group = std::make_shared<local_group>(std::move(merges));
  std::vector<std::unique_ptr<communicator>> ends;
  for (std::size_t r = 0; r < group->size(); ++r)
    ends.push_back(std::make_unique<end_of_group<local_group>>(group, r));
  return ends;
}

} // namespace local

std::vector<std::unique_ptr<communicator>>
make_local_group(std::span<device* const> ranks,
                 const local_group_options& options) {
  return local::make_ends(std::make_unique<local::cpu_merger>(
    std::vector<device*>(ranks.begin(), ranks.end()), options));
}

} // namespace troupe::comm
