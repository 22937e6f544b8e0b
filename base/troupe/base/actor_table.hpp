// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/base/ids.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe {

/// An actor of the application, as a recorder knows it.
struct recorded_actor {
  std::string name; ///< what it calls itself; several can have the same name
  /// Its number in its actor system, which never gives it to another actor.
  /// Two systems, also of one process, can have actors with the same number.
  std::uint64_t id = 0;
  std::string node = {}; ///< process of its system; empty: this one
  /// False: it is only known to have sent messages to actors that are recorded.
  bool is_recorded = false;
  /// When it ended; see now_ns. In a `process_trace`: since the trace's begin.
  std::optional<std::int64_t> end_ns = {};
  bool has_failed = false;
  std::string reason = {}; ///< of its end; empty while it lives
};

/// Which actor of which system. Two actors that live at the same time differ.
struct actor_key {
  std::uint64_t home = 0; ///< a number of the system, or of the process
  std::uint64_t id = 0;

  friend bool operator==(const actor_key&, const actor_key&) = default;
};

/// Names of the application's actors and of the types of their messages.
/// Events have their numbers: dense, from 0, and never used again.
///
/// Thread rule: any thread. No call blocks for longer than a copy takes.
class actor_table {
public:
  static constexpr std::size_t most_actors = 1 << 14; ///< that it can hold
  static constexpr std::size_t most_types = 1 << 12;  ///< the same for types

  /// What was added or has changed.
  struct changes {
    std::uint64_t version = 0; ///< for the next question
    std::vector<std::pair<actor_number, recorded_actor>> actors;
    std::vector<std::pair<std::uint32_t, std::string>> types;

    bool empty() const noexcept { return actors.empty() && types.empty(); }
  };

  /// A new actor. Returns `no_actor` if there are `most_actors`; those that
  /// come later are not recorded.
  actor_number add(const actor_key& key, recorded_actor made);
  /// The number of an actor that has not ended. If it is unknown, adds what
  /// `make` returns, as `add` does.
  actor_number find_or_add(const actor_key& key,
                           const std::function<recorded_actor()>& make);
  /// Does nothing for `no_actor`.
  void rename(actor_number which, std::string_view name);
  /// The actor has ended, now. Only the first call for an actor counts; does
  /// nothing for `no_actor`.
  void end(actor_number which, bool has_failed, std::string reason);

  /// The number of a type of messages, by a key of the caller. If it is
  /// unknown, adds the name that `make` returns. There are at most
  /// `most_types`; the last one stands for all others.
  std::uint32_t type_of(std::uint64_t key,
                        const std::function<std::string()>& make);

  /// What is new since the table had that version; 0: everything.
  changes since(std::uint64_t version) const;

private:
  struct key_hash {
    std::size_t operator()(const actor_key& key) const noexcept;
  };
  struct entry {
    recorded_actor actor;
    actor_key key;
    std::uint64_t version = 0; // of its last change
  };

  actor_number add_locked(const actor_key& key, recorded_actor made);

  mutable std::mutex mutex_; // guards all that follow
  std::uint64_t version_ = 0;
  std::vector<entry> actors_;
  std::unordered_map<actor_key, actor_number, key_hash> living_;
  std::vector<std::pair<std::string, std::uint64_t>> types_; // and version
  std::unordered_map<std::uint64_t, std::uint32_t> type_numbers_;
};

} // namespace troupe
