// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/gate.hpp>
#include <troupe/apps/rank_part.hpp>
#include <troupe/comm/engine/key_store.hpp>

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace troupe::apps {

/// Where the ranks of an epoch on several hosts publish how they can be
/// reached. All others are connected to rank 0, over TLS with the credentials
/// of the epoch, and it passes on what it gets.
///
/// The connections last as long as the object: who ends it last ends it when
/// all others have found what they need, as they have after a collective call.
///
/// Thread rule: as for key_store.
class meeting_store final : public comm::key_store {
public:
  /// Waits for the others until the deadline. Rank 0 listens meanwhile.
  ///
  /// Throws error(peer_failure) if some are missing then or the epoch ends,
  /// and what `actors::gate` and `actors::knock` throw.
  meeting_store(const rank_part& part,
                std::chrono::steady_clock::time_point deadline);

  void publish(const std::string& key, std::span<const char> value) override;
  std::optional<std::vector<char>> find(const std::string& key) override;
  void clear() noexcept override {}

  /// The address of this rank on the network, in figures.
  const std::string& own_address() const noexcept { return own_address_; }

private:
  /// A connection, and the begin of what is coming through it.
  struct peer {
    actors::passage through;
    std::string arrived{};
    bool is_gone = false;
  };

  void let_in(const rank_part& part,
              std::chrono::steady_clock::time_point deadline);
  void take(peer& from);
  void take_record(const std::string& key, const std::string& value);
  void send(peer& to, const std::string& record);

  std::string own_address_;
  std::vector<peer> peers_;
  std::map<std::string, std::string> found_;
};

} // namespace troupe::apps
