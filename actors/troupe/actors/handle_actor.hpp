// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/engine.hpp>
#include <troupe/actors/engine/graph_context.hpp>
#include <troupe/actors/host.hpp>

#include <functional>
#include <string>
#include <utility>

namespace troupe::actors {

/// What CAF knows of an op or variable handle: its address, name, monitors and
/// links. Its mailbox and its task are the engine's, which every message
/// reaches whether or not this object exists; so it is made when somebody asks
/// for the address, or when a message is to come as one of CAF's.
///
/// Receives: `ready_atom` along edges that are CAF messages, `describe_atom`
/// requests, exit messages. Told to exit, it makes the graph unable to run;
/// over several processes only members of the run may tell it.
class handle_actor final : public actor_base {
public:
  using description = std::function<std::string(handle_id)>;

  /// @param runs outlives all messages, see `retire`
  /// @param describe what it answers to `describe_atom`
  handle_actor(caf::actor_config& cfg, graph_context& graph, handle_id id,
               engine& runs, description describe)
    : actor_base(cfg), id_(id), graph_(graph), engine_(runs),
      describe_(std::move(describe)),
      name_(graph::handle_name(*graph.graph, id)) {}

  handle_id handle() const noexcept { return id_; }
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
