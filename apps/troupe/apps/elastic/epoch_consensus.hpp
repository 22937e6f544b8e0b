// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/job_epoch.hpp>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

// How hosts decide which epoch follows another one, so that never two do: Paxos
// (Lamport, "Paxos made simple", 2001), once per number of an epoch. Nothing
// here waits, sends, or writes: what a host knows goes in, and what it is to
// tell and to keep comes out.
//
// The hosts with members of an epoch vote on the next one, each by its folder:
// who has lost that has forgotten how it voted, and has no vote until a later
// epoch has members there. Enough are more than half of them, or half with the
// one that kept the rendezvous. The first epoch needs all of its hosts.
//
// Whoever would keep the rendezvous takes a *ballot*, higher than all that it
// knows, and asks the others to promise that they accept no proposal of a lower
// one. They answer with what they have accepted. If enough have promised, it
// proposes an epoch: of those that have been accepted the one with the highest
// ballot, since that may have been decided, or else one of its own. Once enough
// have accepted it, it is decided. Promises count for later epochs, too, so
// that each further one takes one exchange.

/// Who asks for votes. A folder never asks twice with the same one.
struct ballot {
  std::uint64_t round = 0; ///< 0: nobody
  std::string folder = {}; ///< of the host that asks
  friend auto operator<=>(const ballot&, const ballot&) = default;
};

/// An epoch that is to follow the one before it.
struct epoch_proposal {
  ballot by;
  comm::job_epoch epoch;
  friend bool operator==(const epoch_proposal&,
                         const epoch_proposal&) = default;
};

/// What a host must not forget of its votes. A promise may be told only after
/// it has been kept.
struct vote_memory {
  std::string folder; ///< drawn when the folder was made
  /// The last epoch that this host knows to be decided.
  std::optional<comm::job_epoch> decided = {};
  ballot promised = {}; ///< accepts none with a lower one
  /// The last one that it has accepted, if that is to follow `decided`.
  std::optional<epoch_proposal> accepted = {};
  friend bool operator==(const vote_memory&, const vote_memory&) = default;
};

/// What a host asks of the others that keeps the rendezvous, or would.
struct vote_request {
  ballot by;
  /// The last epoch, if the other host is to learn it.
  std::optional<comm::job_epoch> decided = {};
  std::optional<comm::job_epoch> proposed = {};
  friend bool operator==(const vote_request&, const vote_request&) = default;
};

/// True unless both are epochs of jobs that began apart from each other.
bool are_of_one_job(const std::optional<comm::job_epoch>& one,
                    const std::optional<comm::job_epoch>& other);

/// What a host that is asked keeps; all of it is its answer. Another job's
/// request changes nothing.
void answer(vote_memory& own, const vote_request& asked);

/// The part of the host that asks. It votes, too.
class epoch_candidate {
public:
  /// Takes a new ballot.
  /// @param own of this host; changes with each call that is not const
  explicit epoch_candidate(vote_memory& own);

  /// Takes what the other hosts that are reached have answered last. Decides
  /// what enough have accepted, which then is `own.decided`, and proposes again
  /// what may have been decided before. A host that knows no epoch learns one
  /// only if these can go on from it: otherwise they will end, and it is to
  /// begin the job anew with those that follow.
  void take(std::vector<vote_memory> answers);
  /// What all others are to be asked. They learn the last epoch only if this
  /// host has the votes to go on from it, for the same reason.
  vote_request request() const;

  /// True if the hosts that are reached may decide which epoch follows the last
  /// one. False before the first.
  bool has_votes() const;
  /// True if this host, or one that is reached, knows an epoch.
  bool knows_job() const;
  /// Proposes an epoch that follows the last one, and gives the first one the
  /// origin of all. False if that may not be now: this host has too few votes,
  /// or another epoch may have been decided. Of the first one, all hosts must
  /// be reached.
  bool propose(comm::job_epoch next);

private:
  bool is_asked(const ballot& by) const;
  template <class Voted>
  bool are_enough(const std::optional<comm::job_epoch>& last,
                  const comm::job_epoch& next, Voted voted) const;
  bool may_decide(const comm::job_epoch& next) const;
  bool can_go_on(const comm::job_epoch& last) const;
  const epoch_proposal* accepted_before() const;
  void complete();
  void decide();
  void stand();

  vote_memory& own_;
  std::vector<vote_memory> answers_;
};

} // namespace troupe::apps
