// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/host.hpp>
#include <troupe/actors/remote/gate.hpp>
#include <troupe/actors/remote/node_link.hpp>
#include <troupe/actors/remote/node_messages.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

/// The state of the link, kept alive by the node actor. `calling` is held while
/// the listener is called. If both locks are needed, `calling` is taken before
/// `mutex`. Messages are sent under `mutex`, so that all processes see them in
/// the same order. No function that could call back is called under `mutex`.
struct node_state {
  /// How long a leaving process waits until the others have received
  /// everything.
  static constexpr std::chrono::milliseconds longest_leave{1500};

  caf::actor_system& system;
  std::uint64_t process = 0;
  std::uint64_t processes = 1;
  std::string description;
  node_link::listener listens;
  std::shared_ptr<run_members> members;

  std::mutex calling;
  bool closed = false; // guarded by `calling`: the executor may be gone

  explicit node_state(caf::actor_system& in) : system(in) {}

  enum class stage { joining, knowing, running };

  std::mutex mutex; // guards all members below
  std::condition_variable changed;
  stage now = stage::joining;
  caf::actor self;
  // The directly connected processes: for process 0 all others, for the others
  // process 0.
  std::map<std::uint64_t, caf::actor> nodes;
  actor_list everybody;         // by process, once all have joined
  std::set<std::uint64_t> here; // processes that know the others
  // processes that have left, are lost, or have released this one
  std::set<std::uint64_t> gone;
  std::string failure; // why the run did not begin or has ended
  errc failure_code = errc::peer_failure;
  step_id first_without = 0; // if `failure` is set: first step that cannot run
  step_id ended = 0;         // number of steps that have ended here
  // Set while process 0 waits to leave: this process releases it after this
  // many steps.
  std::optional<step_id> first_leaves_at;
  // Duplicates of CAF's sockets, used to close a connection if the other end no
  // longer answers, because CAF would wait for it. By process: `entered` until
  // it has joined, then `sockets` until it is gone. A duplicate keeps the
  // connection open.
  std::map<std::uint64_t, descriptor> entered;
  std::map<std::uint64_t, descriptor> sockets;
  // What the connections between hosts go through, until the link is closed.
  std::vector<std::unique_ptr<comm::tls_tunnel>> tunnels;
  std::string refusal; // the last one at the gate
  // What processes have published for the group of collectives.
  std::map<std::string, std::string> published;
  std::vector<process_note> notes; // that the application has not taken yet
  bool has_told_leave = false;
  // Process 0 leaves and waits for this one, which has released it.
  bool has_released_first = false;
  bool closing = false;

  bool is_first() const { return process == 0; }

  template <class... Ts>
  void tell(const caf::actor& to, Ts&&... content) {
    post_from(caf::actor_cast<caf::strong_actor_ptr>(self),
              caf::actor_cast<caf::strong_actor_ptr>(to),
              std::forward<Ts>(content)...);
  }
  template <class... Ts>
  void tell_nodes(const Ts&... content) {
    for (auto& [number, node] : nodes)
      if (!gone.contains(number))
        tell(node, content...);
  }
  template <class... Ts>
  void tell_process(std::uint64_t number, Ts&&... content) {
    std::lock_guard guard{mutex};
    if (number < everybody.size() && !gone.contains(number))
      tell(everybody[number], std::forward<Ts>(content)...);
  }

  /// Keeps a tunnel, if there is one, while CAF may use it. Needs the lock.
  void keep(std::unique_ptr<comm::tls_tunnel> tunnel) {
    if (tunnel)
      tunnels.push_back(std::move(tunnel));
  }

  /// The process whose node actor is `who`; empty if `who` is not a member.
  std::optional<std::uint64_t> process_of(const caf::strong_actor_ptr& who);

  void watch(const std::shared_ptr<node_state>& me, std::uint64_t number,
             const caf::actor& node);

  // Message handlers; `from` is the sender's process.
  std::string why_not_to_join(std::uint64_t number) const;
  void on_join(const std::shared_ptr<node_state>& me, std::uint64_t number,
               const std::string& theirs, const caf::strong_actor_ptr& node);
  void on_welcome(const actor_list& all_nodes);
  void on_here(std::uint64_t from);
  void on_begin();
  void on_failed(step_id step, const std::string& failure_there);
  void on_published(std::uint64_t from, const std::string& key,
                    const std::string& value);
  void on_note(std::uint64_t from, const std::string& text);
  void on_leave(std::uint64_t from, step_id steps);
  void on_left(std::uint64_t from);

  void know(const actor_list& all_nodes);
  std::string missing();
  void lose(step_id without, const std::string& why,
            errc code = errc::peer_failure);
  void own_step_ended(step_id step);
  void let_go_if_idle();
  void is_gone(std::uint64_t number);
  bool tell_leave(step_id without);
  bool are_all_gone() const;
  void end_tunnels() noexcept;
  void close() noexcept;
};

} // namespace troupe::actors
