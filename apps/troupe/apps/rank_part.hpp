// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <troupe/actors/executor.hpp>
#include <troupe/apps/data/batch_share.hpp>
#include <troupe/comm/rank_environment.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace troupe::apps {

/// This process's part in a job that a launcher started: one of its ranks. A
/// process that no launcher started is the only one.
///
/// The ranks of a job are the processes of one run. All of them are given the
/// same command, and each has the devices that `--devices` names.
class rank_part {
public:
  /// What the environment says (`comm::find_rank`). Throws what that throws,
  /// and error(invalid_argument) if the ranks are on several hosts.
  rank_part();
  explicit rank_part(std::optional<comm::rank_environment> found);
  /// Removes the folder in which the ranks have met, if this made it.
  ~rank_part();
  rank_part(const rank_part&) = delete;
  rank_part& operator=(const rank_part&) = delete;

  std::size_t rank() const noexcept { return found_ ? found_->rank : 0; }
  std::size_t size() const noexcept { return found_ ? found_->size : 1; }
  bool is_first() const noexcept { return rank() == 0; }
  bool has_others() const noexcept { return size() > 1; }

  /// Number of workers if `--threads` is not given; 0 for one per core. The
  /// ranks of a host share its cores, unless the launcher has done so.
  int default_threads() const;

  /// Turns the options of a run on this rank's devices into those of the run of
  /// all ranks. Does nothing if there are no others.
  void spread(executor_options& options);
  /// The samples of this rank.
  /// @param own_devices number of devices of each rank
  batch_share share_of(std::size_t own_devices) const;

private:
  const std::string& meeting_folder();

  std::optional<comm::rank_environment> found_;
  std::string folder_;
  bool made_folder_ = false;
};

} // namespace troupe::apps
