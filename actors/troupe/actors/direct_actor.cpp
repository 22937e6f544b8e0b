// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/direct_actor.hpp>

#include <algorithm>

namespace troupe::actors {

std::string direct_actor::describe() const {
  return std::string{name()} + ": "
         + (graph().graph->is_op(handle()) ? describe_op()
                                           : describe_variable());
}

std::string direct_actor::describe_op() const {
  const auto* oldest = graph().oldest_step_without([this](const step_state& s) {
    return mailboxes_.missing(handle(), s) == 0;
  });
  if (!oldest)
    return "waits for nothing";
  return "step " + std::to_string(oldest->id) + " waits for "
         + std::to_string(mailboxes_.missing(handle(), *oldest)) + " messages";
}

std::string direct_actor::describe_variable() const {
  const auto readers =
    std::ranges::count_if(graph().graph->ops, [this](auto& op) {
      return std::ranges::find(op.inputs, handle()) != op.inputs.end();
    });
  return "told by its generator, tells " + std::to_string(readers) + " readers";
}

} // namespace troupe::actors
