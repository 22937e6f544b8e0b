// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/remote/entry.hpp>
#include <troupe/apps/elastic/epoch_consensus.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// What a host tells who keeps the rendezvous of a job on several hosts: all
/// that it knows, each time.
struct host_report {
  std::string host;                  ///< differs from that of all others
  std::string address;               ///< at which other hosts reach it
  vote_memory votes;                 ///< with the last epoch that it knows
  std::vector<std::uint64_t> living; ///< numbers of its processes
  std::vector<std::uint64_t> all;    ///< also of those that have ended
  std::vector<std::string> told;     ///< comm::all_told of its folder
  /// It keeps the rendezvous itself: whoever reads this is to connect to it.
  bool keeps = false;

  bool has(std::uint64_t number) const;
  friend bool operator==(const host_report&, const host_report&) = default;
};

/// What who keeps the rendezvous tells a host. The first host, if it does not
/// keep it, tells where that is.
struct host_order {
  vote_request votes; ///< `decided` only if the host does not know it
  /// Of the host's members of `votes.decided`, by their numbers
  /// (comm::to_text).
  std::map<std::uint64_t, std::string> credentials;
  std::vector<std::string> told;
  std::vector<std::uint64_t> ends; ///< processes that the host is to kill
  /// An address: the host is to connect there. The rest means nothing then.
  std::string elsewhere = {};
};

///@{
/// As a line of text. `parse_...` throw error(peer_failure) for anything else.
std::string to_line(const host_report& report);
std::string to_line(const host_order& order);
host_report parse_host_report(const std::string& line);
host_order parse_host_order(const std::string& line);
///@}

/// A connection between a host and who keeps the rendezvous, for lines. No call
/// waits.
///
/// Thread rule: one thread.
class host_wire {
public:
  /// Between two lines. Who hears nothing for longer gives the other side up.
  static constexpr std::chrono::seconds between_signs{1}, longest_silence{10};

  explicit host_wire(actors::passage through);

  /// Sends a line, and what could not be sent before.
  void send(const std::string& line);
  /// Sends what could not be sent before.
  void flush();
  /// The next line that has come; nothing if there is none yet.
  std::optional<std::string> receive();
  /// True if the connection has ended, and all that came before was received.
  bool is_gone() const noexcept { return is_gone_; }

private:
  actors::passage through_;
  std::string to_send_, arrived_;
  bool is_gone_ = false;
};

} // namespace troupe::apps
