// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::comm {

/// The ranks of an elastic job while none of them ends and none is added. The
/// launcher writes each epoch into the rendezvous folder; the ranks read it
/// there.
struct job_epoch {
  std::uint64_t number = 0; ///< from 1 on
  /// By rank: the number that the process keeps in all epochs. Those that live
  /// longest come first.
  std::vector<std::uint64_t> members;
  /// Steps have been done in earlier epochs, but no member was in one of these.
  bool has_only_newcomers = false;

  /// The rank of a member; nothing if it is not among them.
  std::optional<std::size_t> rank_of(std::uint64_t member) const;
  friend bool operator==(const job_epoch&, const job_epoch&) = default;
};

/// Replaces the epoch in a folder, in one step. Throws error(io_failure).
void write_epoch(const std::string& folder, const job_epoch& epoch);
/// Nothing if there is none yet. Throws error(bad_file) if the file is no
/// epoch.
std::optional<job_epoch> read_epoch(const std::string& folder);

///@{
/// A member tells the launcher that its epoch has ended for it, and that it
/// waits for a new one. One that was in no epoch yet tells so of epoch 0. The
/// launcher asks who has told so.
void tell_epoch_ended(const std::string& folder, std::uint64_t epoch,
                      std::uint64_t member);
bool has_epoch_ended(const std::string& folder, std::uint64_t epoch,
                     std::uint64_t member);
///@}

///@{
/// The first rank tells that a step has been done in the epoch.
void tell_step_done(const std::string& folder, std::uint64_t epoch);
bool has_done_step(const std::string& folder, std::uint64_t epoch);
/// In any epoch.
bool has_done_step(const std::string& folder);
///@}

} // namespace troupe::comm
