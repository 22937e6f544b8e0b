// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::comm {

/// The ranks of an elastic job while none of them ends and none is added. The
/// launcher, or one of the ranks, keeps the *rendezvous*: it writes each epoch
/// into the rendezvous folder, where the ranks read it. If they are on several
/// hosts, each of these has such a folder, and a process there keeps it like
/// that of who keeps the rendezvous.
struct job_epoch {
  std::uint64_t number = 0; ///< from 1 on
  /// By rank: the number that the process keeps in all epochs. Those that live
  /// longest come first.
  std::vector<std::uint64_t> members;
  /// Steps have been done in earlier epochs, but no member was in one of these.
  bool has_only_newcomers = false;
  /// By rank: the number of its host. Empty: all are on one.
  std::vector<std::size_t> hosts = {};
  /// Where rank 0 lets the others in. Empty if all are on one host.
  std::string address = {};
  std::uint16_t port = 0;
  ///@{
  /// If the ranks keep the rendezvous, and are on several hosts. `sites` go by
  /// the numbers in `hosts`: who the hosts are, which folder each has, and
  /// where it is reached. Number 0 keeps the rendezvous, and may have no
  /// members.
  struct site {
    std::string host;   ///< no other one has this name
    std::string folder; ///< drawn when the folder was made
    std::string address;
    friend bool operator==(const site&, const site&) = default;
  };
  std::vector<site> sites = {};
  /// Equal in all epochs of a job, and different if the job begins anew.
  std::string origin = {};
  ///@}

  /// The rank of a member; nothing if it is not among them.
  std::optional<std::size_t> rank_of(std::uint64_t member) const;
  std::size_t host_of(std::size_t rank) const {
    return hosts.empty() ? 0 : hosts[rank];
  }
  bool is_on_several_hosts() const;
  friend bool operator==(const job_epoch&, const job_epoch&) = default;
};

///@{
/// As text. `parse_epoch` throws error(bad_file) for anything else.
/// @param name of what has the text, for the error
std::string to_text(const job_epoch& epoch);
job_epoch parse_epoch(const std::string& text, const std::string& name);
///@}

/// Replaces the epoch in a folder, in one step. Throws error(io_failure).
void write_epoch(const std::string& folder, const job_epoch& epoch);
/// Nothing if there is none yet, or not even the folder any more. Throws
/// error(bad_file) if the file is no epoch.
std::optional<job_epoch> read_epoch(const std::string& folder);

/// The file of credentials with which a member takes part in an epoch on
/// several hosts. It is written before the epoch.
std::string credentials_path(const std::string& folder, std::uint64_t epoch,
                             std::uint64_t member);

///@{
/// A member tells who keeps the rendezvous that its epoch has ended for it, and
/// that it waits for a new one. One that was in no epoch yet tells so of epoch
/// 0. Who keeps the rendezvous asks who has told so. Does nothing if the folder
/// is gone, as it is with the launcher.
void tell_epoch_ended(const std::string& folder, std::uint64_t epoch,
                      std::uint64_t member);
bool has_epoch_ended(const std::string& folder, std::uint64_t epoch,
                     std::uint64_t member);
///@}

///@{
/// The first rank tells that a step has been done in the epoch. Does nothing if
/// the folder is gone.
void tell_step_done(const std::string& folder, std::uint64_t epoch);
bool has_done_step(const std::string& folder, std::uint64_t epoch);
/// In any epoch.
bool has_done_step(const std::string& folder);
///@}

///@{
/// Who keeps the rendezvous notes that a member has the state of the job,
/// because it was in an epoch in which a step was done. Who keeps it next reads
/// that.
void note_state(const std::string& folder, std::uint64_t member);
bool has_state(const std::string& folder, std::uint64_t member);
///@}

///@{
/// A rank tells that it has done all steps. Nobody can join any more.
void tell_all_done(const std::string& folder);
bool is_all_done(const std::string& folder);
///@}

///@{
/// What has been told and noted in a folder, as words of letters, digits and
/// '-', and how it is repeated in the folder of another host. `repeat_told`
/// does nothing for other words.
std::vector<std::string> all_told(const std::string& folder);
void repeat_told(const std::string& folder, const std::string& word);
///@}

} // namespace troupe::comm
