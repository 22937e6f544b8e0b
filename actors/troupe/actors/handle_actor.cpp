// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/handle_actor.hpp>

#include <troupe/actors/messages.hpp>

#include <new>
#include <utility>

namespace troupe::actors {

void graph_context::fail(step_state& step, const graph::op_handle& op,
                         std::string name, std::exception_ptr reason) {
  try {
    std::rethrow_exception(reason);
  } catch (const error& e) {
    fail(step, op, std::move(name), e);
  } catch (const std::bad_alloc&) {
    fail(step, op, std::move(name),
         error(errc::out_of_memory, "no memory beside that of tensors"));
  } catch (const std::exception& e) {
    fail(step, op, std::move(name), error(errc::kernel_failure, e.what()));
  } catch (...) {
    fail(step, op, std::move(name),
         error(errc::kernel_failure, "unknown failure"));
  }
}

void graph_context::fail(step_state& step, const graph::op_handle& op,
                         std::string name, error reason) {
  error_context where;
  where.op = std::move(name);
  where.op_type = op.desc->type;
  if (op.device < devices.size())
    where.device = devices[op.device];
  where.step = step.id;
  where.call_stack = op.desc->call_stack();
  step.fail(reason.with_context(where));
  if (step_failed)
    step_failed(owner, step);
}

bool handle_actor::on_message(caf::mailbox_element& element, context ctx) {
  if (!element.content().match_elements<describe_atom>())
    return false;
  reply(element, caf::make_message(describe()), ctx);
  return true;
}

bool handle_actor::obeys(const caf::exit_msg& exit) const {
  // CAF writes the receiver where nobody has signed.
  return !graph_.members
         || (exit.source != address() && graph_.members->obeys(exit.source));
}

void handle_actor::on_exit(const caf::error& reason) {
  // Without this handle no step can be computed; the counting goes on so that
  // steps end, and each reports why.
  graph_.dead.store(true);
  for (auto& s : graph_.steps)
    if (s->remaining.load(std::memory_order_relaxed) > 0)
      s->fail(
        error(errc::peer_failure,
              "the actor of a handle was told to exit: " + to_string(reason),
              {.op = name()}));
}

} // namespace troupe::actors
