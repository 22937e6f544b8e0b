// SPDX-License-Identifier: Apache-2.0
#include "model/machine.hpp"

#include <troupe/base/assert.hpp>

#include <algorithm>
#include <deque>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace troupe::model {

namespace {

// A state is hashed by its bytes.
static_assert(std::has_unique_object_representations_v<pending_write>);
static_assert(std::has_unique_object_representations_v<state>);

/// A state and how it was reached.
struct visit {
  state now;
  const visit* before = nullptr;
  std::size_t thread = 0;
  const char* step = "";
  std::uint32_t number = 0; ///< among all
};

struct same_state {
  bool operator()(const visit* a, const visit* b) const noexcept {
    return a->now == b->now;
  }
};

struct hash_state {
  std::size_t operator()(const visit* v) const noexcept {
    return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(&v->now), sizeof v->now});
  }
};

bool writes(const thread_state& t, variable v) {
  const auto end = t.pending.begin() + t.pending_count;
  return std::any_of(t.pending.begin(), end,
                     [v](const pending_write& w) { return w.to == v; });
}

/// Whether `t`'s write number `i` may become visible before all others.
bool may_leave(const thread_state& t, std::size_t i, memory kind) {
  if (i == 0)
    return true;
  const auto& w = t.pending[i];
  const auto end = t.pending.begin() + static_cast<std::ptrdiff_t>(i);
  return kind == memory::weak && !w.release
         && std::none_of(t.pending.begin(), end,
                         [&](const pending_write& o) { return o.to == w.to; });
}

void leave(state& s, std::size_t thread, std::size_t i) {
  auto& t = s.threads[thread];
  const auto at = t.pending.begin() + static_cast<std::ptrdiff_t>(i);
  s.shared[at->to] = at->what;
  std::move(at + 1, t.pending.end(), at);
  t.pending.back() = {};
  --t.pending_count;
}

class exploration {
public:
  explicit exploration(const machine& m) : machine_(m) {
    reach({machine_.initial});
  }

  outcome run() {
    std::size_t next = 0;
    while (next < order_.size() && expand(order_[next]))
      ++next;
    result_.states = order_.size();
    if (next == order_.size())
      check_rest();
    return result_;
  }

private:
  /// From each state some way leads to an end: threads that only go round and
  /// round would keep a core busy for ever.
  void check_rest() {
    std::vector<std::vector<std::uint32_t>> from(order_.size());
    for (auto [before, behind] : moves_)
      from[behind].push_back(before);
    std::vector<bool> rests(order_.size());
    auto open = ends_;
    while (!open.empty()) {
      const auto at = open.back();
      open.pop_back();
      if (rests[at])
        continue;
      rests[at] = true;
      open.insert(open.end(), from[at].begin(), from[at].end());
    }
    const auto restless = std::ranges::find(rests, false);
    if (restless != rests.end())
      fails(order_[static_cast<std::size_t>(restless - rests.begin())],
            "the threads never come to rest");
  }

  /// False if something was wrong.
  bool expand(const visit& from) {
    if (machine_.always && fails(from, machine_.always(from.now)))
      return false;
    moved_ = false;
    for (std::size_t t = 0; t < machine_.threads.size(); ++t) {
      deliver(from, t);
      execute(from, t);
    }
    if (moved_)
      return true;
    ++result_.ends;
    ends_.push_back(from.number);
    return !fails(from, machine_.at_end(from.now));
  }

  void deliver(const visit& from, std::size_t thread) {
    const auto& t = from.now.threads[thread];
    for (std::size_t i = 0; i < t.pending_count; ++i)
      if (may_leave(t, i, machine_.rules)) {
        visit to{from.now, &from, thread, "(a write becomes visible)"};
        leave(to.now, thread, i);
        reach(std::move(to));
      }
  }

  void execute(const visit& from, std::size_t thread) {
    const auto& t = from.now.threads[thread];
    if (t.step == ended)
      return;
    const auto& code = machine_.threads[thread];
    TROUPE_ASSERT(t.step < code.size());
    const auto& step = code[t.step];
    if (waits_for_own_writes(t, step))
      return;
    visit to{from.now, &from, thread, step.name};
    memory_access view{to.now, thread, machine_.rules};
    if (step.can && !step.can(view))
      return;
    take(step, view, to.now.threads[thread], code);
    // What others cannot tell from the step before needs no state of its own.
    while (is_silent(to.now.threads[thread], code))
      take(code[to.now.threads[thread].step], view, to.now.threads[thread],
           code);
    reach(std::move(to));
  }

  static void take(const instruction& step, memory_access& view,
                   thread_state& t, const program& code) {
    ++t.step;
    step.act(view);
    if (t.step == code.size())
      t.step = ended;
  }

  static bool is_silent(const thread_state& t, const program& code) {
    if (t.step == ended)
      return false;
    const auto what = code[t.step].what;
    return what == instruction::kind::local
           || (what == instruction::kind::fence && t.pending_count == 0);
  }

  bool waits_for_own_writes(const thread_state& t,
                            const instruction& step) const {
    if (step.what == instruction::kind::plain)
      return t.pending_count + writes_per_step > max_pending;
    if (step.what == instruction::kind::change
        && machine_.rules == memory::weak)
      return writes(t, step.of);
    return t.pending_count > 0;
  }

  void reach(visit v) {
    moved_ = true;
    const auto* before = v.before;
    v.number = static_cast<std::uint32_t>(order_.size());
    order_.push_back(std::move(v));
    const auto [at, is_new] = seen_.insert(&order_.back());
    if (before)
      moves_.emplace_back(before->number, (*at)->number);
    if (!is_new)
      order_.pop_back();
  }

  bool fails(const visit& at, std::string why) {
    if (why.empty())
      return false;
    result_.failure = std::move(why);
    for (auto* v = &at; v->before; v = v->before)
      result_.trace =
        std::to_string(v->thread) + ": " + v->step + "\n" + result_.trace;
    return true;
  }

  const machine& machine_;
  std::deque<visit> order_; // breadth first, so a trace is a shortest one
  std::unordered_set<const visit*, hash_state, same_state> seen_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> moves_; // by numbers
  std::vector<std::uint32_t> ends_;
  bool moved_ = false;
  outcome result_;
};

} // namespace

value memory_access::load(variable from) const noexcept {
  for (auto i = self_.pending_count; i > 0; --i)
    if (self_.pending[i - 1u].to == from)
      return self_.pending[i - 1u].what;
  return state_.shared[from];
}

void memory_access::write(variable to, value what, bool release) noexcept {
  if (memory_ == memory::sequential) {
    state_.shared[to] = what;
    return;
  }
  TROUPE_ASSERT(self_.pending_count < max_pending);
  self_.pending[self_.pending_count++] = {to, what, release};
}

outcome explore(const machine& m) {
  return exploration{m}.run();
}

} // namespace troupe::model
