// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/host.hpp>

#include <functional>
#include <string>
#include <utility>

namespace troupe::actors {

/// The CAF actor of an op or variable handle: address, name, monitors and
/// links. The handle's mailbox and task belong to the engine, and messages
/// reach them without this object. The actor is therefore created only when its
/// address is requested, or if an edge to the handle sends CAF messages.
///
/// Receives `ready_atom` on edges that send CAF messages, `describe_atom`
/// requests, and exit messages. After an exit message the graph cannot run any
/// more. In a run over several processes, only exit messages from members of
/// the run count.
class handle_actor final : public actor_base {
public:
  using description = std::function<std::string(handle_id)>;

  /// @param runs must outlive all messages, see `retire`
  /// @param describe makes the answer to `describe_atom`
  handle_actor(caf::actor_config& cfg, graph_context& graph, handle_id id,
               engine& runs, description describe)
    : actor_base(cfg), id_(id), graph_(graph), engine_(runs),
      describe_(std::move(describe)),
      name_(graph::handle_name(*graph.graph, id)) {}

  /// "conv2d#12@cpu:1".
  const char* name() const override { return name_.c_str(); }

protected:
  bool on_message(caf::mailbox_element& element, context ctx) override;
  bool obeys(const caf::exit_msg& exit) const override;
  void on_exit(const caf::error& reason) override;

private:
  handle_id id_;
  graph_context& graph_;
  engine& engine_;
  description describe_;
  std::string name_;
};

} // namespace troupe::actors
