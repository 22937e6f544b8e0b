// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/tracing/worker_stacks.hpp>

#include <troupe/base/clock.hpp>
#include <troupe/base/spin.hpp>
#include <troupe/base/stacks/code_places.hpp>

#include <optional>
#include <string>
#include <utility>

namespace troupe::actors {

namespace {

/// A process with so many threads that do not answer has a problem that more
/// of them would not explain better, and each takes time.
constexpr std::size_t most_unanswered = 4;
/// How often a worker is asked that meanwhile was between two ops, or was
/// served by another thread.
constexpr int most_tries = 4;

/// What a worker runs, as its own thread sees it when it is asked.
struct look {
  const busy_workers* busy;
  std::size_t worker;
  pid_t thread;
  std::optional<busy_workers::work> found = std::nullopt;

  /// In a signal handler. Others can serve the worker by now.
  static bool is_at_work(void* context) noexcept {
    auto& self = *static_cast<look*>(context);
    self.found = self.busy->on(self.worker);
    return self.found && self.found->thread == self.thread;
  }
};

class stack_taker {
public:
  stack_taker(const busy_workers& busy, thread_stacks& asked,
              const recorder& clock, std::uint64_t begin_ns)
    : busy_(busy), asked_(asked), clock_(clock), begin_ns_(begin_ns) {}

  std::optional<trace::worker_stack> stack_of(std::size_t worker) {
    for (int tries = 0; tries < most_tries; ++tries) {
      const auto seen = busy_.on(worker);
      if (!seen)
        break;
      if (auto made = ask(worker, *seen))
        return made;
    }
    return std::nullopt;
  }

private:
  /// Nothing if the thread does not run an op of this worker any more.
  std::optional<trace::worker_stack> ask(std::size_t worker,
                                         const busy_workers::work& seen) {
    if (unanswered_ == most_unanswered)
      return without_frames(worker, seen,
                            "it was not asked, because others have not "
                            "answered");
    look at{&busy_, worker, seen.thread};
    thread_stack stack;
    switch (asked_.take(seen.thread, asked_.patience(), stack,
                        {&look::is_at_work, &at})) {
    case stack_answer::taken: return with_frames(worker, *at.found, stack);
    case stack_answer::none:
      ++unanswered_;
      return without_frames(worker, seen, no_answer_text(seen.thread));
    case stack_answer::not_sent:
      ++unanswered_;
      return without_frames(worker, seen, "the system has refused the signal");
    case stack_answer::declined:
    case stack_answer::ended: break;
    }
    return std::nullopt;
  }

  std::string no_answer_text(pid_t thread) const {
    const auto state = thread_state(thread);
    return "it has not answered the signal for "
           + std::to_string(asked_.patience().count()) + " ms"
           + (state.empty() ? "" : "; the system says: " + state);
  }

  trace::worker_stack entry(std::size_t worker,
                            const busy_workers::work& of) const {
    trace::worker_stack made;
    made.worker = worker;
    made.thread = of.thread;
    made.op = of.op;
    made.step = of.step;
    made.is_help = of.is_help;
    const auto ran_ticks = static_cast<std::int64_t>(ticks() - of.since);
    made.taken_ns = static_cast<std::int64_t>(now_ns() - begin_ns_);
    made.since_ns = made.taken_ns
                    - static_cast<std::int64_t>(static_cast<double>(ran_ticks)
                                                * clock_.ns_per_tick());
    return made;
  }

  trace::worker_stack without_frames(std::size_t worker,
                                     const busy_workers::work& of,
                                     std::string why) const {
    auto made = entry(worker, of);
    made.missing = std::move(why);
    return made;
  }

  trace::worker_stack with_frames(std::size_t worker,
                                  const busy_workers::work& of,
                                  const thread_stack& stack) {
    auto made = entry(worker, of);
    for (auto address : stack.frames()) {
      // A call's return address can be that of the next function: the call
      // itself lies before it.
      const std::uintptr_t back = made.frames.empty() ? 0 : 1;
      auto place = places_.at(address - back);
      place.module_offset += back;
      place.symbol_offset += place.symbol.empty() ? 0 : back;
      made.frames.push_back(std::move(place));
    }
    return made;
  }

  const busy_workers& busy_;
  thread_stacks& asked_;
  const recorder& clock_;
  std::uint64_t begin_ns_;
  code_places places_;
  std::size_t unanswered_ = 0;
};

/// "run" for "run(int) const". A name can have parentheses itself, as those of
/// anonymous namespaces.
std::string without_parameters(const std::string& symbol) {
  auto at = symbol.rfind(')');
  for (int depth = 0; at != std::string::npos && at > 0; --at) {
    depth += symbol[at] == ')' ? 1 : symbol[at] == '(' ? -1 : 0;
    if (depth == 0)
      return symbol.substr(0, at);
  }
  return symbol;
}

} // namespace

std::string useful_function(std::span<const code_place> frames) {
  constexpr std::size_t most_characters = 100;
  for (auto& f : frames) {
    if (f.symbol.empty() || f.module.starts_with("libc.so")
        || f.module.starts_with("libstdc++.so"))
      continue;
    auto name = without_parameters(f.symbol);
    if (name.size() > most_characters)
      name = name.substr(0, most_characters) + "...";
    return name;
  }
  return {};
}

std::vector<trace::worker_stack> stacks_of(const busy_workers& busy,
                                           thread_stacks& asked,
                                           const recorder& clock,
                                           std::uint64_t begin_ns) {
  stack_taker taker{busy, asked, clock, begin_ns};
  std::vector<trace::worker_stack> all;
  for (std::size_t worker = 0; worker < busy.workers(); ++worker)
    if (auto made = taker.stack_of(worker))
      all.push_back(std::move(*made));
  return all;
}

} // namespace troupe::actors
