// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/wait_chain.hpp>
#include <troupe/graph/wiring/wiring_plan.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::actors {

class collective_ranks;
struct step_call;

/// Explains what a running graph waits for, from its plan and its counters.
/// This needs no recording. Steps continue meanwhile, so each statement was
/// true at some moment, but not all at the same one.
///
/// Thread rule: any thread, several at once.
class wait_finder {
public:
  /// @param runs the engine that runs the graph; outlives the finder
  /// @param context the context of this graph; outlives the finder
  /// @param ranks of the graph's collectives; null if there are none
  wait_finder(const engine& runs, const graph_context& context,
              graph::wiring_plan plan, const collective_ranks* ranks);

  /// See `executor::why`.
  wait_chain why(handle_id id) const;
  wait_chain why() const;
  /// The first link of `why(id)`; for the last step if none is running.
  wait_chain::link describe(handle_id id) const;
  /// See `executor::collectives`.
  std::vector<collective_wait> collectives() const;
  /// An op that a worker runs; nothing if none does.
  std::optional<wait_chain::link> running() const;

private:
  wait_chain launched_step() const;
  /// A handle in a running step.
  struct place {
    handle_id handle = no_handle;
    const step_state* step = nullptr;
  };

  std::vector<const step_state*> steps_under_way() const;
  const step_state* under_way(step_id id) const;
  std::optional<place> oldest_unfinished(handle_id id) const;
  std::optional<place> last_to_end() const;
  template <class Find>
  wait_chain follow_from(Find find) const;
  wait_chain follow(place from) const;
  wait_chain::link link_of(place p) const;
  std::optional<place> sender_to_wait_for(place p) const;
  std::optional<place> runs_on_stream_of(place p) const;
  std::optional<place> launched_on_stream_of(place p) const;
  std::optional<place> op_that_launch_waits_for(place p) const;
  std::string missing_message(place p) const;
  bool awaits_start(place p) const;
  std::optional<comm::waiting_call> awaited_ranks(place p) const;
  std::vector<std::size_t>
  paused_ranks(place p, const std::optional<comm::waiting_call>& call) const;
  std::vector<wait_chain::busy_worker> busy_workers() const;
  handle_id collective_on(std::size_t device, const step_call& call) const;

  const engine& engine_;
  const graph_context& context_;
  const collective_ranks* ranks_;
  graph::wiring_plan plan_;
  std::vector<std::uint32_t> in_edges_; // positions in the plan, by receiver
  std::vector<std::uint32_t> first_in_edge_;
};

} // namespace troupe::actors
