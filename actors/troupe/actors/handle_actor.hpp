// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/host.hpp>
#include <troupe/actors/messages.hpp>
#include <troupe/actors/step_state.hpp>
#include <troupe/actors/storage.hpp>
#include <troupe/base/trace.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

class handle_actor;
class stream_actor;

/// What the handles of one graph share. Owned by the graph; constant while
/// steps run, except for what `steps` holds.
struct graph_context {
  std::vector<std::unique_ptr<step_state>> steps; ///< one per slot
  std::vector<std::string> devices;               ///< "cpu:0", ...: for errors
  trace_sink* trace = nullptr;
  /// Draws for delivery_shuffle; 0: off.
  std::uint64_t shuffle_seed = 0;
  std::uint32_t shuffle_max_delay_us = 0;
  bool check_nan = false;
  bool dry_run = false;
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
};

/// The sending end of an edge, in one of three forms. Which one is chosen when
/// the graph is built; the sender's code is the same.
struct port {
  enum class form : std::uint8_t {
    counter, ///< a call into the receiver's counting mailbox
    message, ///< a CAF message to a receiver of this process
    remote,  ///< a CAF message to a receiver elsewhere, with the value
  };
  form kind = form::counter;
  /// What the receiver needs: a value that is there (finished), or one that
  /// its own stream can wait for (launched).
  phase needs = phase::finished;
  std::uint32_t in_edge = 0; ///< number of this edge at the receiver
  std::uint32_t distance = 0;
  handle_id to = no_handle;
  handle_actor* receiver = nullptr; ///< counter
  caf::strong_actor_ptr address;    ///< message, remote
  storage* value = nullptr;         ///< remote: what the edge carries, or null
};

/// An op or variable of the SSA graph: receives readiness along numbered
/// in-edges and sends it along ports.
///
/// Receives: readiness (in any form), `describe_atom` requests, exit messages.
/// Sends: readiness along its ports.
/// Thread rule: `arrive` from any thread; everything else before the first
/// step.
class handle_actor : public actor_base {
public:
  handle_actor(caf::actor_config& cfg, graph_context& graph, handle_id id,
               std::string name);

  const char* name() const final { return name_.c_str(); }
  handle_id handle() const noexcept { return id_; }

  /// A readiness message has come along in-edge number `in_edge`.
  virtual void arrive(std::uint32_t in_edge, const readiness& r) = 0;

  /// Announces an in-edge and returns its number. `value`: where a remote
  /// sender's value goes, or null. `producer`: the stream that tickets on this
  /// edge belong to, or null.
  virtual std::uint32_t add_in_edge(stream_actor* producer, storage* value,
                                    std::uint32_t distance) = 0;
  void add_port(port p);
  const std::vector<port>& ports() const noexcept { return ports_; }
  /// Gives remote ports to handle `to` their address.
  void connect(handle_id to, const caf::strong_actor_ptr& address);

  /// Says that an in-edge comes from another process. Before the first step.
  virtual void mark_remote(std::uint32_t in_edge) = 0;
  /// The message that a lost process owes along a remote in-edge: failed.
  void make_up(std::uint32_t in_edge, std::uint32_t slot);

  /// Drops what refers to other actors and to the graph. Retired, no job of
  /// its own in a queue.
  virtual void forget();

  /// One line for people: name and what it waits for.
  virtual std::string describe() const = 0;

protected:
  bool on_message(caf::mailbox_element& element, context ctx) final;
  void on_exit(const caf::error& reason) final;

  /// Sends `r` along all ports that need what it announces; `r.slot` is the
  /// sender's step.
  void deliver(const readiness& r);

  graph_context& graph() const noexcept { return graph_; }
  void trace(trace_kind kind, handle_id to, std::uint32_t slot) const;
  /// Counts a message from another process once: true the first time for an
  /// in-edge and slot. When a process is lost its messages are made up, and
  /// one may still be under way.
  virtual bool claim(std::uint32_t in_edge, std::uint32_t slot) = 0;
  /// Whether there is an in-edge of that number.
  virtual bool has_in_edge(std::uint32_t in_edge) const = 0;
  /// Stores the value that came with a remote message.
  virtual void take_value(std::uint32_t in_edge, std::uint32_t slot,
                          const std::string& bytes) = 0;

private:
  void deliver_shuffled(const readiness& r);
  void send(const port& p, const readiness& r);

  graph_context& graph_;
  handle_id id_;
  std::string name_;
  std::vector<port> ports_;
};

} // namespace troupe::actors
