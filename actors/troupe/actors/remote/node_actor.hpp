// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/host.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace troupe::actors {

struct node_state;

/// The actor that represents a process to the others. Exit messages do not
/// terminate it; only the link does.
class node_actor final : public actor_base {
public:
  node_actor(caf::actor_config& cfg, std::shared_ptr<node_state> link)
    : actor_base(cfg), link_(std::move(link)) {}

  const char* name() const override { return "troupe.node"; }
  /// Releases the link. The actor must be retired.
  void forget() { link_.reset(); }

protected:
  bool obeys(const caf::exit_msg&) const override { return false; }
  bool on_message(caf::mailbox_element& element, context ctx) override;

private:
  bool on_control(message_content& m, std::uint64_t from);
  bool on_step(message_content& m, std::uint64_t from);

  std::shared_ptr<node_state> link_;
};

} // namespace troupe::actors
