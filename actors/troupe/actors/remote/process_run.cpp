// SPDX-License-Identifier: Apache-2.0
#include <troupe/actors/remote/process_run.hpp>

#include <troupe/actors/actor_graph.hpp>
#include <troupe/actors/remote/run_description.hpp>
#include <troupe/actors/remote/run_group.hpp>
#include <troupe/actors/remote/state_gathering.hpp>
#include <troupe/actors/remote/transport.hpp>
#include <troupe/actors/steps/step_failures.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::actors {

process_run::process_run(parts p) : parts_(std::move(p)) {
  const auto& nodes = *parts_.options->nodes;
  link_ = std::make_unique<node_link>(
    *parts_.system, nodes,
    describe_run(*parts_.options, *parts_.loss, *parts_.graph,
                 *parts_.parameters),
    node_link::listener{[this](step_id id, const error& reason) {
                          parts_.failures->failed_elsewhere(id, reason);
                        },
                        [this](step_id first_without, const error& reason) {
                          is_gone(first_without, reason);
                        }});
  parts_.actors->context().members = link_->members();
  if (ranks()) {
    join_run_group(nodes, *link_, parts_.memory, *ranks());
    connect_transfers();
    ranks()->attach_to(*parts_.queue);
    watch_others();
  }
  drop_state_of_others(*parts_.graph, parts_.where, *parts_.parameters);
}

collective_ranks* process_run::ranks() const {
  return parts_.memory ? parts_.actors->tasks().ranks() : nullptr;
}

void process_run::connect_transfers() {
  const auto& process_of = parts_.options->nodes->process_of_device;
  std::vector<std::size_t> own;
  for (std::size_t d = 0; d < process_of.size(); ++d)
    if (parts_.where.is_here(d))
      own.push_back(d);
  if (!parts_.transfers || own.empty())
    return;
  wire_.emplace(*parts_.graph, *parts_.transfers, *ranks(), own, *parts_.trace,
                [this, process_of](std::size_t device, const std::string& why) {
                  const auto process = process_of[device];
                  link_->is_lost(process, "process " + std::to_string(process)
                                            + " is lost: " + why);
                });
  parts_.transfers->connect(*wire_);
  wire_->open();
}

/// Values are no longer taken, but those of the last steps are still sent.
void process_run::is_gone(step_id first_without, const error& reason) {
  parts_.failures->process_is_gone(first_without, reason);
  for (std::uint32_t c = 0;
       parts_.transfers && c < parts_.transfers->channels(); ++c)
    parts_.transfers->receiver_is_gone(c);
}

void process_run::step_ended(step_id step, const error* failure) {
  if (failure)
    link_->tell_failed(step, *failure);
  link_->ended(step);
}

void process_run::leave(step_id steps) {
  leave_group(steps);
  link_->leave(steps);
  watch_.reset();
  wire_.reset();
  link_.reset();
}

/// Tells the other ranks why: because of a process that was gone before, or of
/// this one.
void process_run::leave_group(step_id steps) {
  if (!ranks())
    return;
  const error own{errc::peer_failure,
                  "process " + std::to_string(parts_.where.this_process)
                    + " has left the run after " + std::to_string(steps)
                    + " steps"};
  ranks()->leave(parts_.failures->obstacle_to(steps).value_or(own));
}

void process_run::watch_others() {
  const auto& nodes = *parts_.options->nodes;
  peer_watch::parts watched;
  watched.process_of = nodes.process_of_device;
  for (std::size_t d = 0; d < watched.process_of.size(); ++d)
    if (parts_.where.is_here(d))
      watched.ends.push_back(&ranks()->of(d));
  if (watched.ends.empty()) // a process without devices
    return;
  watched.silence_limit = std::chrono::milliseconds{nodes.silence_limit_ms};
  watched.stall_limit = std::chrono::milliseconds{nodes.stall_limit_ms};
  watched.steps = parts_.steps_ended;
  watched.is_paused = parts_.is_paused;
  watched.doing = [this] { return activity(); };
  watched.lost = [this](std::size_t process, const std::string& why) {
    return link_->is_lost(process, why);
  };
  watched.noticed = nodes.noticed;
  watch_.emplace(std::move(watched));
}

/// What the oldest running step waits for at last. If that is something from
/// outside, its arrival may have to wait for the op that a worker runs.
std::string process_run::activity() const {
  const auto& waits = parts_.actors->waits();
  const auto chain = waits.why();
  if (chain.links.empty())
    return std::string{parts_.is_paused() ? comm::peer_state::paused
                                          : "runs no step"};
  const auto& last = chain.links.back();
  const auto running =
    last.how_far == progress::runs ? std::nullopt : waits.running();
  return to_string(last) + (running ? "; " + running->name + " runs" : "");
}

} // namespace troupe::actors
