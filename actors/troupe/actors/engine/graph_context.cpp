// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/engine/graph_context.hpp>

#include <troupe/base/recorder.hpp>

#include <new>
#include <utility>

namespace troupe::actors {

namespace {

error error_of(const std::exception_ptr& reason) {
  try {
    std::rethrow_exception(reason);
  } catch (const error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return {errc::out_of_memory, "no memory beside that of tensors"};
  } catch (const std::exception& e) {
    return {errc::kernel_failure, e.what()};
  } catch (...) {
    return {errc::kernel_failure, "unknown failure"};
  }
}

} // namespace

void graph_context::fail(step_state& step, const graph::op_handle& op,
                         std::exception_ptr reason) {
  fail(step, op, error_of(reason));
}

void graph_context::fail(step_state& step, std::exception_ptr reason) {
  step.fail(error_of(reason).with_context(
    {.device = devices.front(), .step = step.id}));
  if (step_failed)
    step_failed(owner, step);
}

void graph_context::fail(step_state& step, const graph::op_handle& op,
                         error reason) {
  error_context where;
  where.op = handle_name(*graph, op.id);
  where.op_type = op.desc->type;
  if (op.device < devices.size())
    where.device = devices[op.device];
  where.step = step.id;
  where.call_stack = op.desc->call_stack();
  if (trace)
    trace->record_if_wanted(event_kind::failure, op.id, step.id);
  step.fail(reason.with_context(where));
  if (step_failed)
    step_failed(owner, step);
}

void graph_context::fail_for_good(const error& reason) {
  {
    std::lock_guard guard{failing_for_good_};
    if (!failed_for_good_)
      failed_for_good_ = reason;
  }
  for (auto& s : steps)
    if (s->under_way.load(std::memory_order_relaxed))
      s->fail(reason);
  for (auto& s : steps)
    if (step_failed && s->under_way.load(std::memory_order_relaxed))
      step_failed(owner, *s);
}

std::optional<error> graph_context::failed_for_good() const {
  std::lock_guard guard{failing_for_good_};
  return failed_for_good_;
}

} // namespace troupe::actors
