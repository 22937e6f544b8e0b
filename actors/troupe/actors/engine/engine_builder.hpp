// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/engine/engine.hpp>

#include <cstdint>
#include <vector>

namespace troupe::actors {

/// Lays a wiring plan out in an engine's arrays: mailboxes in the order of use,
/// stream by stream, an op followed by the variables that it writes; what each
/// tells and gives back in one list of numbers. Spent when the engine is made.
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
  void order_mailboxes();
  void number_ops(const std::vector<std::vector<handle_id>>& by_stream);
  void number_variables(const std::vector<std::vector<handle_id>>& by_stream);
  void fill_ops();
  void add_pending_ops();
  void number_shared_releases();
  /// The stream if its drains, one after the other, do all that its ops do;
  /// else `several`.
  std::uint32_t serial_stream_of(std::uint32_t stream) const;
  void find_forms();
  void find_sending_streams();
  void count_messages();
  /// How many steps before its receiver's an edge is sent.
  std::uint32_t distance_of(const wired_edge& e) const;
  void count_sender(target to, std::uint32_t stream);
  void add_end();
  void arm();
  void list_targets();
  void list_op(op_mailbox& m, handle_id op);
  void list_variable(variable_mailbox& m);
  void collect_targets(handle_id id);
  void add_on_completion(const wired_edge& e);
  void add_ticket(const wired_edge& e);
  target add_port(const wired_edge& e);
  pending_op* pending(handle_id op) const;
  const planned_stream& stream_of(handle_id id) const {
    return plan_.streams()[plan_.stream_of(id)];
  }

  engine& engine_;
  engine::parts& parts_;
  const graph::ssa_graph& graph_;
  const wiring_plan& plan_;
  std::vector<target> end_of_; // by stream; a port: it has none
  target end_;                 // of the step
  // The stream in whose drains a handle sends its messages, and the one whose
  // drains send all that a mailbox counts; `several` if there is none such.
  std::vector<std::uint32_t> sends_on_;          // by handle
  std::vector<std::uint32_t> ops_told_on_;       // by mailbox
  std::vector<std::uint32_t> variables_told_on_; // by mailbox
  std::vector<std::uint32_t> shared_number_;     // by storage
  std::vector<port::form> form_;                 // by edge of the plan
  std::vector<target> target_;                   // by edge of the plan
  // Lists of the handle that is listed: what it gives back, words of targets.
  std::vector<std::uint32_t> own_, shared_, delayed_, now_, later_;
};

} // namespace troupe::actors
