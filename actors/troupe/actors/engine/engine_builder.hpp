// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/engine.hpp>

#include <cstdint>
#include <vector>

namespace troupe::actors {

/// Lays out a wiring plan in an engine's arrays. Mailboxes are in the order of
/// use, stream by stream, each op followed by the variables that it writes. The
/// receivers and releases of each op are in one list of numbers. Used once,
/// when the engine is built.
class engine_builder {
public:
  engine_builder(engine& made, engine::parts& p);

  void build();

private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::uint32_t several = none - 1;
  static inline const target nowhere{target::kind::port, none >> 2};

  void add_streams();
  void prepare_recording();
  recorded_results::op results_of(const graph::op_handle& o) const;
  void order_mailboxes();
  void number_ops(const std::vector<std::vector<handle_id>>& by_stream);
  void number_variables(const std::vector<std::vector<handle_id>>& by_stream);
  void fill_ops();
  void add_pending_ops();
  void number_shared_releases();
  /// The stream if its drains run one after the other and do everything for its
  /// ops; otherwise `several`.
  std::uint32_t serial_stream_of(std::uint32_t stream) const;
  void find_forms();
  void find_sending_streams();
  void count_messages();
  /// Distance in steps between the sender's and the receiver's step.
  std::uint32_t distance_of(const graph::wired_edge& e) const;
  void count_sender(target to, std::uint32_t stream);
  void find_message_lead();
  void add_end();
  void arm();
  void list_targets();
  void list_op(op_mailbox& m, handle_id op);
  void list_variable(variable_mailbox& m);
  void collect_targets(handle_id id);
  void add_ticket(const graph::wired_edge& e);
  target add_port(const graph::wired_edge& e);
  pending_op* pending(handle_id op) const;
  std::vector<std::uint32_t> feeds_used_by(const graph::op_handle& o) const;
  const graph::planned_stream& stream_of(handle_id id) const {
    return plan_.streams()[plan_.stream_of(id)];
  }

  engine& engine_;
  engine::parts& parts_;
  const graph::ssa_graph& graph_;
  const graph::wiring_plan& plan_;
  std::vector<target> end_of_; // by stream; a port if it has none
  target end_;                 // the step's end
  // The stream whose drains send a handle's messages, and the stream whose
  // drains send all messages of a mailbox. `several` if there is no single
  // stream.
  std::vector<std::uint32_t> sends_on_;          // by handle
  std::vector<std::uint32_t> ops_told_on_;       // by mailbox
  std::vector<std::uint32_t> variables_told_on_; // by mailbox
  std::vector<std::uint32_t> shared_number_;     // by storage
  std::vector<bool> is_fed_;                     // by storage
  std::vector<port::form> form_;                 // by edge of the plan
  std::vector<target> target_;                   // by edge of the plan
  // Lists of the current handle: what it releases, and words of its targets.
  std::vector<std::uint32_t> own_, shared_, delayed_, now_, later_;
};

} // namespace troupe::actors
