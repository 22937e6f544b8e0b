// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/direct_graph.hpp>
#include <troupe/actors/handle_actor.hpp>

namespace troupe::actors {

/// What CAF knows of a handle in the direct form: its address, monitors and
/// links. Readiness never comes this way, so it is made when somebody asks for
/// the address; the mailbox and the task are in `direct_graph`.
class direct_actor final : public handle_actor {
public:
  /// @param mailboxes outlives all messages, see `retire`
  direct_actor(caf::actor_config& cfg, graph_context& graph, handle_id id,
               const direct_graph& mailboxes)
    : handle_actor(cfg, graph, id, handle_name(*graph.graph, id)),
      mailboxes_(mailboxes) {}

  std::string describe() const override;

private:
  std::string describe_op() const;
  std::string describe_variable() const;

  const direct_graph& mailboxes_;
};

} // namespace troupe::actors
