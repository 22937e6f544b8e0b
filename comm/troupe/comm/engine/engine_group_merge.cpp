// SPDX-License-Identifier: Apache-2.0

// How an engine's group merges the values of a call that all ranks have made.
#include <troupe/comm/engine/engine_group.hpp>

#include <troupe/comm/call_text.hpp>
#include <troupe/kernels/memory/address_space.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace troupe::comm {

/// Merges calls that all ranks have made, in order. One thread does it at a
/// time.
/// @param may_exchange the thread can wait for other processes
void engine_group::advance(bool may_exchange, asked_call* asked) {
  lock held{mutex_};
  while (!is_merging_ && !ready_.empty()) {
    auto& m = *ready_.front();
    if (!may_exchange && needs_exchange(m)) {
      work_.notify_one();
      return;
    }
    ready_.pop_front();
    is_merging_ = true;
    held.unlock();
    const auto failure = merge(m);
    held.lock();
    m.is_merged = true;
    notices ends;
    for (auto r : own_) {
      m.ranks[r].staged = {};
      if (auto* whole = std::exchange(m.ranks[r].whole, nullptr))
        ends.push_back({r, m.position, whole, failure});
    }
    tell(held, ends, asked);
    is_merging_ = false;
    retire();
  }
}

/// False if the letters have all values.
bool engine_group::needs_exchange(const meeting& m) const {
  return engine_->processes() > 1
         && std::ranges::any_of(
           m.ranks, [](const visit& v) { return !v.letter.head().has_values; });
}

/// The group's own thread: exchanges values that are not in letters.
void engine_group::serve() {
  lock held{mutex_};
  for (;;) {
    work_.wait(held, [this] {
      return ends_
             || (!is_merging_ && !ready_.empty()
                 && needs_exchange(*ready_.front()));
    });
    if (ends_)
      return;
    held.unlock();
    advance(true);
    held.lock();
  }
}

/// Merges the values and hands out the results. Nobody else changes a call that
/// all ranks have made.
std::exception_ptr engine_group::merge(meeting& m) {
  bool fits = false;
  try {
    letters_.clear();
    for (auto& v : m.ranks)
      letters_.push_back(v.letter);
    plan_->read(letters_);
    const bool is_here =
      std::ranges::all_of(letters_, [](const letter_view& letter) {
        return letter.head().has_values;
      });
    plan_->check(is_here);
    fits = true;
    own_values_.clear();
    for (auto r : own_) {
      auto& v = m.ranks[r];
      own_values_.push_back(
        {r, &v.staged.given, &v.staged.rows, v.whole == nullptr});
    }
    results_.clear();
    if (is_here)
      exchange_->merge_letters(*plan_, own_values_, results_);
    else if (const auto why =
               exchange_->merge_values(*plan_, own_values_, results_))
      return std::make_exception_ptr(*why); // in all processes
    hand_out_results(m);
    return nullptr;
  } catch (const error& e) {
    // A call that does not fit fails in all processes; others are alone with
    // their error.
    return fits ? break_off(e) : std::make_exception_ptr(e);
  } catch (const std::bad_alloc&) {
    return break_off({errc::out_of_memory, out_of_memory_text()});
  }
}

void engine_group::hand_out_results(meeting& m) {
  for (std::size_t i = 0; i < results_.size(); ++i)
    hand_out_result(m, i, results_[i]);
  results_.clear();
}

/// Sets the result of a variable on the ranks of this process that want it.
void engine_group::hand_out_result(meeting& m, std::size_t i,
                                   merged_value& result) {
  const auto& plan = plan_->values()[i];
  std::size_t takers = 0;
  bool is_elsewhere = false; // another variable refers to the memory
  const auto holds = [&](const variable* v) {
    return v && v->is_tensor()
           && v->as_tensor().memory().block() == result.dense.memory().block();
  };
  for (auto r : own_) {
    const auto& v = m.ranks[r];
    if (!v.whole)
      continue;
    const auto& value = v.call.values[i];
    const bool takes = (plan.takers & bit_of(r)) != 0;
    takers += takes ? 1 : 0;
    is_elsewhere |= holds(value.in) && !(takes && value.in == value.out);
  }
  for (auto r : own_) {
    const auto& v = m.ranks[r];
    if (!v.whole || (plan.takers & bit_of(r)) == 0)
      continue;
    auto& out = *v.call.values[i].out;
    const bool is_shared = takers > 1 || is_elsewhere;
    if (!result.rows) {
      out.set(is_shared ? result.dense.share() : result.dense);
      continue;
    }
    auto rows = *result.rows;
    if (is_shared)
      rows.values = rows.values.share();
    out.set(std::move(rows));
  }
}

/// The process cannot go on: its ranks leave. Returns what the call fails with.
std::exception_ptr engine_group::break_off(const error& why) {
  constexpr std::chrono::milliseconds patience{300};
  if (nearby_)
    nearby_->break_off(); // before a rank can use its memory again
  notices all;
  lock held{mutex_};
  if (why.code() == errc::peer_failure) // the engine tells which process it is
    ended_.wait_for(held, patience, [this] { return dead_.has_value(); });
  if (!dead_) {
    dead_ = why;
    send_all(message_of({.kind = message_kind::broken}, why));
    exchange_->stop();
    for (auto r : own_) {
      if (!why_[r])
        why_[r] = why;
      end_rank(r, made_[r], left_error(r, why), all);
    }
    fail_unmade(why, all);
  }
  const auto first = *dead_;
  tell(held, all);
  return std::make_exception_ptr(first);
}

} // namespace troupe::comm
