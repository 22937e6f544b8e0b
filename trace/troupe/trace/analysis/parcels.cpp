// SPDX-License-Identifier: Apache-2.0
#include <troupe/trace/analysis/parcels.hpp>

#include <algorithm>

namespace troupe::trace {

namespace {

std::uint64_t key_of(handle_id op, std::uint32_t step) {
  return std::uint64_t{op} << 32 | step;
}

/// A rank's part in a call of a collective.
struct rank_call {
  std::optional<parcel_end> begin, done;
  std::uint64_t bytes = 0;
};

using rank_calls = std::unordered_map<std::uint64_t, rank_call>; // op and step

/// The calls of all ops that have partners in other processes. Their results
/// are there at the last event of the call.
rank_calls calls_in(std::span<const process_trace> parts,
                    const std::vector<bool>& is_rank) {
  rank_calls calls;
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (std::size_t i = 0; i < parts[p].events.size(); ++i) {
      const auto& e = parts[p].events[i];
      if (e.from >= is_rank.size() || !is_rank[e.from])
        continue;
      const parcel_end here{p, i, e.time};
      switch (e.kind) {
      case event_kind::run_begin:
        calls[key_of(e.from, e.step)].begin = here;
        break;
      case event_kind::merge_begin:
        calls[key_of(e.from, e.step)].bytes = e.amount;
        break;
      case event_kind::run_end:
      case event_kind::completion:
        calls[key_of(e.from, e.step)].done = here;
        break;
      default: break;
      }
    }
  return calls;
}

} // namespace

parcel_list::parcel_list(std::span<const process_trace> parts,
                         const op_graph& graph) {
  read_values(parts);
  if (parts.size() > 1)
    read_collectives(parts, graph);
}

parcel& parcel_list::at(parcel_kind kind, handle_id receiver,
                        std::uint32_t step) {
  const auto [found, is_new] =
    by_receiver_.try_emplace(key_of(receiver, step), all_.size());
  if (is_new) {
    parcel made;
    made.kind = kind;
    made.receiver = receiver;
    made.step = step;
    all_.push_back(made);
  }
  return all_[found->second];
}

void parcel_list::read_values(std::span<const process_trace> parts) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto handles = parts[p].graph.handles.size();
    for (std::size_t i = 0; i < parts[p].events.size(); ++i) {
      const auto& e = parts[p].events[i];
      const bool is_sent = e.kind == event_kind::parcel_sent;
      if ((!is_sent && e.kind != event_kind::parcel_arrived)
          || e.from >= handles || e.to >= handles)
        continue;
      auto& made = at(parcel_kind::value, e.to, e.step);
      made.sender = e.from;
      made.bytes = e.amount;
      (is_sent ? made.sent : made.arrived) = parcel_end{p, i, e.time};
    }
  }
}

/// Each rank waits for the one that begins last.
void parcel_list::read_collectives(std::span<const process_trace> parts,
                                   const op_graph& graph) {
  const auto& handles = graph.graph().handles;
  std::vector<bool> is_rank(handles.size());
  for (handle_id op = 0; op < handles.size(); ++op)
    is_rank[op] = handles[op].is_collective && !graph.partners(op).empty();
  const auto calls = calls_in(parts, is_rank);
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (const auto& e : parts[p].events) {
      if (e.kind != event_kind::run_begin || e.from >= is_rank.size()
          || !is_rank[e.from])
        continue;
      const auto& own = calls.at(key_of(e.from, e.step));
      const rank_call* last = nullptr;
      auto sender = no_handle;
      for (auto partner : graph.partners(e.from)) {
        const auto found = calls.find(key_of(partner, e.step));
        if (found == calls.end() || !found->second.begin)
          continue;
        if (!last || found->second.begin->time > last->begin->time) {
          last = &found->second;
          sender = partner;
        }
      }
      if (!last || !own.begin || !own.done || last->begin->trace == p
          || last->begin->time <= own.begin->time
          || last->begin->time > own.done->time)
        continue;
      auto& made = at(parcel_kind::collective, e.from, e.step);
      made.sender = sender;
      made.bytes = last->bytes;
      made.sent = last->begin;
      made.arrived = own.done;
    }
}

const parcel* parcel_list::find(handle_id receiver, std::uint32_t step) const {
  const auto found = by_receiver_.find(key_of(receiver, step));
  return found == by_receiver_.end() ? nullptr : &all_[found->second];
}

} // namespace troupe::trace
