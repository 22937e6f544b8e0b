// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/handle_actor.hpp>
#include <troupe/actors/messages.hpp>
#include <troupe/actors/storage.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

class stream_actor;
class wired_actor;

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
  wired_actor* receiver = nullptr; ///< counter
  caf::strong_actor_ptr address;   ///< message, remote
  storage* value = nullptr;        ///< remote: what the edge carries, or null
};

/// A handle that receives readiness along numbered in-edges and sends it along
/// ports.
///
/// Receives: readiness in any form, and what each handle does.
/// Sends: readiness along its ports.
/// Thread rule: `arrive` from any thread; everything else before the first
/// step.
class wired_actor : public handle_actor {
public:
  using handle_actor::handle_actor;

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

protected:
  bool on_message(caf::mailbox_element& element, context ctx) final;

  /// Sends `r` along all ports that need what it announces; `r.slot` is the
  /// sender's step.
  void deliver(const readiness& r);

  void trace(trace_kind kind, handle_id to, std::uint32_t slot) const;
  /// Counts a message from another process once: true the first time for an
  /// in-edge and slot. When a process is lost its messages are made up, and
  /// one may still be under way.
  virtual bool claim(std::uint32_t in_edge, std::uint32_t slot) = 0;
  /// Whether there is an in-edge of that number.
  virtual bool has_in_edge(std::uint32_t in_edge) const = 0;
  /// Whether the sender of an in-edge is in another process.
  virtual bool is_remote(std::uint32_t in_edge) const = 0;
  /// Stores the value that came with a remote message.
  virtual void take_value(std::uint32_t in_edge, std::uint32_t slot,
                          const std::string& bytes) = 0;

private:
  void deliver_shuffled(const readiness& r);
  void send(const port& p, const readiness& r);
  /// Whether readiness along an in-edge comes as a CAF message from there.
  bool may_come(std::uint32_t in_edge, const caf::strong_actor_ptr& from) const;

  std::vector<port> ports_;
};

} // namespace troupe::actors
