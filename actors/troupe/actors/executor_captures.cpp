// SPDX-License-Identifier: Apache-2.0
// Steps of an executor that are recorded and launched as a whole.
#include <troupe/actors/executor_state.hpp>

namespace troupe {

void executor::impl::start_captures() {
  if (!options.capture || options.hooks.dry_run
      || !devices.front()->can_record())
    return;
  capture_obstacle = actors::captured_steps::obstacle(options, ssa);
  if (capture_obstacle.empty())
    captures.emplace(actors::captured_steps::parts{
      actors.get(), devices.front().get(), parameters.get(), trace,
      feeds_needed.names});
}

// In a recording, nothing of the step runs, and nobody learns of it.
actors::captured_steps::way
executor::impl::record(step_in_flight& s, actors::serving_thread& serving,
                       then next) {
  using way = actors::captured_steps::way;
  auto& state = state_of(s.id);
  feeding->set();
  if (!captures->begin(state))
    return way::by_actors;
  failures->admit(s.id, s.id, false);
  actors->context().trace = nullptr; // an op that cannot be captured is no news
  workers->begin_step();
  if (next == then::waits)
    serving.sit();
  actors->start(state);
  serving.serve_until([&] { return !captures->is_recording(); });
  captures->wait_until_recorded();
  settle();
  actors->context().trace = trace;
  return captures->end(state) ? way::launched : way::by_actors;
}

} // namespace troupe
