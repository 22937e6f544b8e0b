// SPDX-License-Identifier: Apache-2.0
// Records events of ops, their memory, and arrivals at collectives.
#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/engine/observer.hpp>
#include <troupe/actors/engine/storage.hpp>

namespace troupe::actors {

namespace {

std::size_t bytes_of(const variable& value) {
  if (value.is_tensor())
    return value.as_tensor() ? value.as_tensor().bytes() : 0;
  return value.is_rows() && value.as_rows().values
           ? value.as_rows().values.bytes()
           : 0;
}

} // namespace

void engine::record_begin(const op_mailbox& op, handle_id id, step_id step,
                          observed& o) {
  const auto index = ops_.index_of(op);
  // What an op on a stream reads may not be there yet: see
  // `record_late_begin`. What it holds in place is not asked for when it is
  // complete.
  if (!op.may_be_pending)
    for (auto temporary : results_.in_place(index))
      o.held_in_place += bytes_at(temporary, step);
  if (const auto made_ready_on = ready_on_[index]; made_ready_on != o.worker())
    o.record(event_kind::hand_over, id, step, made_ready_on);
  o.record(event_kind::run_begin, id, step);
  if (!op.may_be_pending && results_.is_collective(index))
    o.record(event_kind::merge_begin, id, step, bytes_to_merge(index, step));
}

void engine::record_late_begin(const op_mailbox& op, step_id step) {
  const auto index = ops_.index_of(op);
  if (results_.is_collective(index) && trace_.wants(trace_level::ops))
    trace_.record(event_kind::merge_begin, handle_of(op), step,
                  bytes_to_merge(index, step));
}

inline std::size_t engine::bytes_at(std::uint32_t temporary,
                                    step_id step) const noexcept {
  return bytes_of(places_.at(temporary, slot_of(step)));
}

std::uint64_t engine::bytes_to_merge(std::size_t index,
                                     step_id step) const noexcept {
  std::uint64_t bytes = 0;
  for (auto temporary : results_.merged(index))
    bytes += bytes_at(temporary, step);
  return bytes;
}

/// An op can take the memory of its only output for itself, as sums of
/// accumulated gradients do.
void engine::record_taken(const op_mailbox& op, step_id step,
                          const observed& o) const {
  if (o.held_in_place == 0)
    return;
  std::uint64_t left = 0;
  auto taken = no_handle;
  for (auto temporary : results_.in_place(ops_.index_of(op))) {
    left += bytes_at(temporary, step);
    taken = variable_of_[temporary];
  }
  if (left == 0)
    o.record(event_kind::deallocation, handle_of(op), step, o.held_in_place,
             taken);
}

template <class Record>
void engine::record_results(const op_mailbox& op, step_id step,
                            Record record) const {
  const auto index = ops_.index_of(op);
  if (results_.is_collective(index))
    record(event_kind::merge_end, 0, no_handle);
  for (auto temporary : results_.allocated(index))
    if (const auto bytes = bytes_at(temporary, step); bytes > 0)
      record(event_kind::allocation, bytes, variable_of_[temporary]);
}

void engine::record_end(const op_mailbox& op, handle_id id, step_id step,
                        const observed& o) {
  record_results(op, step,
                 [&](event_kind kind, std::uint64_t amount, handle_id to) {
                   o.record(kind, id, step, amount, to);
                 });
  record_taken(op, step, o);
  o.record(event_kind::run_end, id, step);
}

void engine::record_late_results(const op_mailbox& op, step_id step) {
  if (trace_.wants(trace_level::ops))
    record_results(op, step,
                   [&](event_kind kind, std::uint64_t amount, handle_id to) {
                     trace_.record(kind, handle_of(op), step, amount, to);
                   });
}

void engine::record_freed(handle_id op, std::uint32_t temporary, step_id step,
                          std::uint32_t slot) noexcept {
  if (!trace_.wants(trace_level::ops))
    return;
  if (const auto bytes = bytes_of(places_.at(temporary, slot)); bytes > 0)
    trace_.record(event_kind::deallocation, op, step, bytes,
                  variable_of_[temporary]);
}

void engine::record_arrival(const op_mailbox& at, handle_id from, step_id step,
                            const observed& o) {
  if (from == no_handle || !results_.is_collective(ops_.index_of(at)))
    return;
  if (const auto device = device_of_[from]; device >= 0)
    o.record(event_kind::arrival, handle_of(at), step,
             static_cast<std::uint64_t>(device), from);
}

} // namespace troupe::actors
