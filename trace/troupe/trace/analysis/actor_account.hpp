// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/trace_event.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::trace {

/// What an actor of the application has done, by the events so far.
struct actor_activity {
  std::uint64_t received = 0; ///< messages that were sent to it
  std::uint64_t handled = 0;
  std::uint64_t skipped = 0; ///< a message counts each time
  std::uint64_t busy_ns = 0; ///< in its handlers, of those that have ended
  std::uint64_t longest_ns = 0;
  /// Messages in its mailbox. Not known before it has begun to handle one.
  std::optional<std::uint64_t> waiting;
  std::uint64_t most_waiting = 0;
  /// Type of the message that it handles, or has handled last.
  std::optional<std::uint32_t> last_type;
  std::optional<std::uint64_t> handles_since; ///< ns; not set: it handles none
};

/// Adds up events of the application's actors. Everything that tells of their
/// mailboxes in a trace uses this account.
class actor_account {
public:
  /// Takes the trace's events in their order. Ignores events of other kinds,
  /// and actors that no recorder can have.
  void apply(const trace_event& e);
  /// By number. Actors that no event names are missing, those that are only
  /// known as senders have received nothing.
  const std::vector<actor_activity>& actors() const noexcept { return all_; }
  /// All zero for an actor that no event names.
  actor_activity of(std::size_t actor) const {
    return actor < all_.size() ? all_[actor] : actor_activity{};
  }

private:
  actor_activity* find(actor_number which);

  std::vector<actor_activity> all_;
};

} // namespace troupe::trace
