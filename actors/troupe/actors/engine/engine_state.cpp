// SPDX-License-Identifier: Apache-2.0
// How far handles are, as seen from outside while steps run.
#include <troupe/actors/engine/engine.hpp>

namespace troupe::actors {

std::uint32_t engine::expected_of(target to) const noexcept {
  return to.what() == target::kind::op ? ops_.at(to.number()).expected
                                       : variables_.at(to.number()).expected;
}

mailbox_counter& engine::counter_of(target to, step_id step) const noexcept {
  return to.what() == target::kind::op
           ? op_mailboxes::counter(ops_.at(to.number()), which_counter(step))
           : variable_mailboxes::counter(variables_.at(to.number()),
                                         which_counter(step));
}

engine::running_op engine::runs_on(std::size_t worker) const noexcept {
  const auto* op = running_[worker].op.load(std::memory_order_relaxed);
  return op ? running_op{handle_of(*op),
                         op->step.load(std::memory_order_relaxed)}
            : running_op{};
}

engine::handle_state engine::state_of(handle_id id,
                                      const step_state& step) const {
  const auto number = step.id.load(std::memory_order_relaxed);
  const auto to = target_of_[id];
  const auto word = counter_of(to, number).load(std::memory_order_relaxed);
  if (mailbox_count::round(word) == round_of(number))
    return {progress::waits, mailbox_count::messages(word), expected_of(to)};
  if (to.what() != target::kind::op)
    return {progress::is_done};
  const auto& op = ops_.at(to.number());
  const auto* const of_step = op.step.load(std::memory_order_relaxed);
  // An op that is sending its messages no longer has a step.
  if (of_step == &step || of_step == nullptr)
    for (std::size_t w = 0; w < workers_; ++w)
      if (running_[w].op.load(std::memory_order_relaxed) == &op)
        return {.how_far = progress::runs, .worker = w};
  if (of_step == &step)
    return {progress::is_ready};
  if (op.may_be_pending) {
    const auto& pending = pending_ops_[pending_of_[id]];
    const auto& launch = pending.launches[which_counter(number)];
    if (launch.under_way.load(std::memory_order_relaxed)
        && launch.step.load(std::memory_order_relaxed) == &step)
      return {progress::launched};
  }
  return {progress::is_done};
}

} // namespace troupe::actors
