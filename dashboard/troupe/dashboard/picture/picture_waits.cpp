// SPDX-License-Identifier: Apache-2.0
// Why a handle waits, by what a picture shows.
#include <troupe/dashboard/picture/answers.hpp>

#include <algorithm>
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

} // namespace troupe::dashboard
