// SPDX-License-Identifier: Apache-2.0
// Why a handle waits, by what a picture shows.
#include <troupe/dashboard/picture/answers.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::dashboard {

using actors::progress;
using actors::wait_chain;

namespace {

progress progress_of(handle_state state) {
  switch (state) {
  case handle_state::is_ready: return progress::is_ready;
  case handle_state::runs: return progress::runs;
  case handle_state::is_done: return progress::is_done;
  default: return progress::waits;
  }
}

wait_chain::link link_of(const live_picture& picture, handle_id id) {
  const auto& h = picture.graph().handles[id];
  wait_chain::link link;
  link.handle = id;
  link.name = h.name;
  link.step = picture.newest_step().value_or(0);
  link.how_far = picture.newest_step() ? progress_of(picture.states()[id])
                                       : progress::no_step;
  link.of_messages = picture.needs(id);
  link.messages =
    link.of_messages
    - std::min<std::uint32_t>(link.of_messages, picture.arrived()[id]);
  link.stream = h.stream;
  for (std::size_t w = 0; w < picture.workers(); ++w)
    if (picture.slices().running_on(w) == id)
      link.worker = w;
  return link;
}

/// What a waiting handle waits for: a handle of the same step that is not done.
handle_id awaited_by(const live_picture& picture, handle_id id,
                     const std::vector<bool>& seen) {
  for (const auto& e : picture.graph().edges)
    if (e.to == id && e.distance == 0 && !seen[e.from]
        && picture.states()[e.from] != handle_state::is_done)
      return e.from;
  return no_handle;
}

/// Whether something of the same step comes before each handle.
std::vector<bool> with_senders(const live_picture& picture) {
  std::vector<bool> has(picture.graph().handles.size());
  for (const auto& e : picture.graph().edges)
    has[e.to] = has[e.to] || e.distance == 0;
  return has;
}

/// The first op of this process that needs no other op of its step.
handle_id first_op(const live_picture& picture) {
  const auto& graph = picture.graph();
  const auto has_senders = with_senders(picture);
  // What a variable needs is the op that writes it.
  std::vector<bool> needs_op(has_senders.size());
  for (const auto& e : graph.edges)
    needs_op[e.to] =
      needs_op[e.to]
      || (e.distance == 0
          && (graph.handles[e.from].is_op || has_senders[e.from]));
  for (handle_id id = 0; id < needs_op.size(); ++id)
    if (graph.handles[id].is_op && picture.has(id) && !needs_op[id])
      return id;
  return no_handle;
}

} // namespace

wait_chain why_in(const live_picture& picture, handle_id id) {
  wait_chain chain;
  std::vector<bool> seen(picture.graph().handles.size());
  while (id < seen.size()) {
    seen[id] = true;
    chain.links.push_back(link_of(picture, id));
    if (chain.links.back().how_far != progress::waits)
      break;
    id = awaited_by(picture, id, seen);
  }
  return chain;
}

// Any handle that is not done keeps a step from ending; the one that runs says
// most.
wait_chain why_in(const live_picture& picture) {
  if (picture.steps_under_way() == 0)
    return {};
  const auto states = picture.states();
  for (auto wanted :
       {handle_state::runs, handle_state::is_ready, handle_state::waits}) {
    const auto found = std::ranges::find(states, wanted);
    if (found != states.end())
      return why_in(picture, static_cast<handle_id>(found - states.begin()));
  }
  return {};
}

wait_chain next_step_in(const live_picture& picture) {
  const auto id = first_op(picture);
  if (id == no_handle)
    return {};
  wait_chain::link link;
  link.handle = id;
  link.name = picture.graph().handles[id].name;
  link.step = picture.newest_step() ? *picture.newest_step() + 1 : 0;
  link.how_far = progress::waits;
  link.messages = link.of_messages = picture.needs(id);
  link.stream = picture.graph().handles[id].stream;
  wait_chain chain;
  chain.links.push_back(std::move(link));
  return chain;
}

} // namespace troupe::dashboard
