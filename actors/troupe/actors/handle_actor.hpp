// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/host.hpp>
#include <troupe/actors/remote/run_members.hpp>
#include <troupe/actors/step_state.hpp>
#include <troupe/base/error.hpp>
#include <troupe/base/trace.hpp>
#include <troupe/graph/ssa_graph.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

class idle_workers;

/// What the handles of one graph share. Owned by the graph; constant while
/// steps run, except for what `steps` holds.
struct graph_context {
  const graph::ssa_graph* graph = nullptr;        ///< outlives the handles
  std::vector<std::unique_ptr<step_state>> steps; ///< one per slot
  std::vector<std::string> devices;               ///< "cpu:0", ...: for errors
  trace_sink* trace = nullptr;
  idle_workers* helpers = nullptr; ///< outlive the handles
  /// Draws for delivery_shuffle; 0: off.
  std::uint64_t shuffle_seed = 0;
  std::uint32_t shuffle_max_delay_us = 0;
  bool check_nan = false;
  bool dry_run = false;
  /// Some in-edges of this process are CAF messages (edge_form).
  bool messages_within = false;
  /// Of a run over several processes; else null. Set before the first step.
  std::shared_ptr<const run_members> members;
  /// A handle was told to exit: no further step can run.
  std::atomic<bool> dead{false};
  /// Called when an op has made a step fail, before others hear of it.
  void (*step_failed)(void* owner, step_state& step) = nullptr;
  /// Called by whoever ends a step, on its thread.
  void (*step_ended)(void* owner, step_state& step) = nullptr;
  void* owner = nullptr;

  std::uint32_t slots() const noexcept {
    return static_cast<std::uint32_t>(steps.size());
  }
  std::uint32_t slot_after(std::uint32_t slot,
                           std::uint32_t distance) const noexcept {
    const auto sum = slot + distance; // distance < slots
    return sum < slots() ? sum : sum - slots();
  }

  /// Makes a step fail in the name of an op. Any thread.
  void fail(step_state& step, const graph::op_handle& op, std::string name,
            std::exception_ptr reason);
  void fail(step_state& step, const graph::op_handle& op, std::string name,
            error reason);

  /// Of the steps under way the oldest for which `has_run` is false; null if
  /// there is none. For descriptions: others may run on meanwhile.
  template <class HasRun>
  const step_state* oldest_step_without(HasRun has_run) const {
    const step_state* oldest = nullptr;
    for (auto& s : steps)
      if (s->remaining.load(std::memory_order_relaxed) > 0 && !has_run(*s)
          && (!oldest || s->id < oldest->id))
        oldest = s.get();
    return oldest;
  }
};

/// An op or variable of the SSA graph.
///
/// Receives: `describe_atom` requests, exit messages, and what derived classes
/// know. Told to exit, it makes the graph unable to run; over several processes
/// only members of the run may tell it.
class handle_actor : public actor_base {
public:
  /// @param name see graph::handle_name
  handle_actor(caf::actor_config& cfg, graph_context& graph, handle_id id,
               std::string name)
    : actor_base(cfg), id_(id), graph_(graph), name_(std::move(name)) {}

  handle_id handle() const noexcept { return id_; }
  /// "conv2d#12@cpu:1".
  const char* name() const final { return name_.c_str(); }
  /// One line for people: the name and what it waits for.
  virtual std::string describe() const = 0;

protected:
  bool on_message(caf::mailbox_element& element, context ctx) override;
  bool obeys(const caf::exit_msg& exit) const final;
  void on_exit(const caf::error& reason) final;

  graph_context& graph() const noexcept { return graph_; }

private:
  handle_id id_;
  graph_context& graph_;
  std::string name_;
};

} // namespace troupe::actors
