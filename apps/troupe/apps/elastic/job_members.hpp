// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/comm/job_epoch.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace troupe::apps {

/// The rendezvous of an elastic job: which processes are its ranks. `troupe
/// launch` keeps it, or one of the ranks does (epoch_keeper). A process has
/// a place from 0 on, in which another follows it if it ends, and a number that
/// no other has. Each change begins a new epoch (comm/job_epoch.hpp).
///
/// A process that is added to a running job is a *guest* until it has taken
/// part in a step: the job can go on, or end, without it.
///
/// Thread rule: one thread.
class job_members {
public:
  using clock = std::chrono::steady_clock;
  /// Adds to an epoch what the ranks need to meet. Its members are the argument
  /// `places` by rank.
  using completion = std::function<void(
    comm::job_epoch&, const std::vector<std::size_t>& places)>;

  /// Writes the first epoch into the folder, with a process in each place.
  /// @param complete for ranks on several hosts; empty: they are on one
  job_members(std::string folder, std::size_t places, completion complete = {});

  ///@{
  /// For processes that have numbers already: writes the first epoch, or goes
  /// on after the last one of somebody who kept the rendezvous before. It
  /// writes none then.
  job_members(std::string folder, const std::vector<std::uint64_t>& numbers);
  job_members(std::string folder, const comm::job_epoch& last);
  ///@}

  /// The epoch that was begun last.
  const comm::job_epoch& epoch() const noexcept { return epoch_; }

  std::uint64_t number_in(std::size_t place) const {
    return places_[place].number;
  }
  /// The place of a process that lives; nothing if it has none.
  std::optional<std::size_t> place_of(std::uint64_t number) const;
  std::size_t places() const noexcept { return places_.size(); }
  bool lives(std::size_t place) const { return places_[place].lives; }
  /// Number of processes in the epoch.
  std::size_t living() const noexcept { return order_.size(); }
  /// The same with those that are to come in.
  std::size_t started() const;
  bool is_guest(std::size_t place) const;

  /// A process is to be started. It comes in when it has told that it waits
  /// (`let_in`). Returns its place: an empty one, or one more than before.
  std::size_t add(clock::time_point now);
  /// The same in a certain place, which is empty, or is one more than before.
  void add_in(std::size_t place, clock::time_point now);
  /// A process with this number has been started by somebody else. The rest is
  /// as with `add`.
  std::size_t add_number(std::uint64_t number, clock::time_point now);
  /// Makes those members that have told since that they wait for an epoch.
  /// True if there are any: an epoch with them is due.
  bool let_in();

  /// False if the processes of this place have ended early again and again. The
  /// others then get time to make progress.
  bool may_start_again(std::size_t place, clock::time_point now);
  /// The process of a place has ended, and another is to follow it, whose
  /// number this returns. That one is where the first was: in the epoch, or
  /// still to come in.
  std::uint64_t replace(std::size_t place, clock::time_point now);
  /// True if no step has been done in many epochs in a row.
  bool makes_no_progress() const;
  /// The process of a place has ended for good. True if it was in the epoch,
  /// so that another one is due.
  bool remove(std::size_t place);
  /// Begins an epoch with those that live, and writes it into the folder.
  /// Throws error(io_failure).
  void begin_epoch();
  ///@{
  /// The same in two parts, for who must ask others: the epoch with those that
  /// live, before `completion`, and that it has begun and is written.
  comm::job_epoch next_epoch();
  void note_begin(const comm::job_epoch& next);
  ///@}
  /// True if the epoch has ended for all that are in it: another one is due.
  bool has_ended() const;

  /// Looks which processes have told that the epoch has ended for them. Returns
  /// the places of those that have not for some seconds, while others have:
  /// they are stopped or hang. Guests do not count: they can have lost patience
  /// with a long step.
  std::vector<std::size_t> look_for_silent(clock::time_point now);

private:
  struct seat {
    std::uint64_t number = 0;
    bool lives = true;
    bool has_come_in = true; ///< is in the epoch
    bool is_added = false;   ///< to a running job
    bool is_newcomer = true; ///< was in no epoch in which a step was done
    clock::time_point started;
    int early_ends = 0; ///< in a row
  };

  void start_in(seat& p, std::uint64_t number, clock::time_point now);
  void start_new(seat& p, std::uint64_t number, clock::time_point now);
  void note_steps();
  std::vector<std::size_t> places_of_members() const; ///< by rank

  std::string folder_;
  completion complete_;
  comm::job_epoch epoch_;
  std::uint64_t next_number_ = 0;
  int idle_epochs_ = 0; // in a row, in which no step was done
  std::vector<seat> places_;
  std::vector<std::uint64_t> order_; // of members, the oldest first
  std::optional<clock::time_point> told_since_;
};

} // namespace troupe::apps
